import type { Command } from 'commander';
import { type DepsOn, type Stores, withExisting } from '../compose/stores/stores.ts';

/** Adds the two flags that select the database of a product. */
export function withDatabase(command: Command, product: 'berth' | 'marketplace' = 'berth'): Command {
  return command
    .option('--database <url>', `sqlite:PATH or postgres://…; default sqlite:./.berth/${product}.db`)
    .option('--config <file>', `${product}.yaml; see ${product}.example.yaml`);
}

/** The body of a command. Its parameters are the database, then commander's: the arguments, the flags, the command. */
export type Body<Deps, Args extends unknown[]> = (deps: Deps, ...args: Args) => Promise<void>;

/** An action that opens the database of the configuration that `load` returns, and closes it after `body`. */
export function actionOn<
  Store extends { close(): Promise<void> },
  Config extends { database: string },
  Args extends unknown[],
>(
  stores: Stores<Store>,
  load: (command: Command) => Config,
  body: Body<DepsOn<Store> & { config: Config }, Args>,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const config = load(args.at(-1) as Command);
    await withExisting(stores, config.database, (deps) => body({ ...deps, config }, ...(args as Args)));
  };
}
