import { Command } from 'commander';
import { marketplaceStores } from '../../compose/stores/marketplace.ts';
import type { CommandDeps as Deps } from '../../marketplace/operate/commands.ts';
import { commands } from '../../marketplace/operate/commands.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { onlyLocal, withContext } from '../context/contexts.ts';
import { localTarget, onTarget, type Target } from '../context/target.ts';
import { actionOn, type Body, withDatabase } from '../database.ts';
import { withOperatorKeys } from '../operators-command.ts';
import { loadMarketplaceFor, onMarketplaceDatabase } from './database.ts';

/**
 * Creates a command that has only views and actions, which cannot ask providers; only an alert needs their catalogs.
 * Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = addActions<OperationDeps>(new Command(name), operations, (command, body) =>
    onTarget('marketplace', withDatabase(command, 'marketplace'), onLocal(name, command, body), body),
  );
  // The operators' API does not have these.
  return addActions<OperationDeps & Deps>(noun, commands, (command, body) =>
    withContext(withDatabase(command, 'marketplace')).action(onlyLocal(onLocal(name, command, body))),
  );
}

/** Runs `body` on the database of `berth marketplace`. */
function onLocal(
  name: string,
  command: Command,
  body: Body<Target<OperationDeps & Deps>, unknown[]>,
): (...args: unknown[]) => Promise<void> {
  const needsCatalogs = name === 'alerts' && command.name() === 'create';
  return actionOn(marketplaceStores, loadMarketplaceFor, async (deps, ...args: unknown[]) => {
    const run = (sellers?: Deps['sellers']) =>
      body(localTarget({ ...deps, sellers } as typeof deps & OperationDeps & Deps), ...args);
    if (!needsCatalogs) return run();
    const { withProviders } = await import('../../compose/marketplace/providers.ts');
    return withProviders(deps.config, deps.store, run);
  });
}

/** Creates `berth marketplace operators`. */
export function marketplaceOperatorsCommand(): Command {
  const name = 'berth marketplace operators';
  return withOperatorKeys(marketplaceActionCommand('operators'), onMarketplaceDatabase, name);
}
