import type { Command } from 'commander';
import type { Operation } from '../../operator-kit/operation.ts';
import type { Product } from '../../operator-kit/product.ts';
import type { Clock } from '../../ports/clock.ts';
import { systemClock } from '../../runtime/system.ts';
import type { Body } from '../database.ts';
import { localActor } from '../local-actor.ts';
import { type Context, contextOf, withContext } from './contexts.ts';

/** Where a command reads and acts: the database, or a server. */
export interface Target<Deps> {
  clock: Pick<Clock, 'now' | 'setTimer'>;
  /** `by`: the operator's name, instead of the user of the machine or the holder of the key. @throws {Fatal} */
  perform(operation: Operation<Deps>, input: Record<string, unknown>, by?: string): Promise<unknown>;
}

/** Gives a command its body, and what it works on. */
export type OnTarget<Deps> = (command: Command, body: Body<Target<Deps>, unknown[]>) => Command;

/** The database as a target. */
export function localTarget<Deps extends { clock: Clock }>(deps: Deps): Target<Deps> {
  return {
    clock: deps.clock,
    perform: (operation, input, by) => operation.perform(deps, localActor(by), input),
  };
}

/** What a command does with the key of an account. */
export type OfTenant = (context: Context, ...args: never[]) => Promise<void>;

/** Runs `body` on the server of the context, or else what `local` runs. */
export function onTarget<Deps>(
  product: Product,
  command: Command,
  local: (...args: unknown[]) => Promise<void>,
  body: Body<Target<Deps>, unknown[]>,
  ofTenant?: OfTenant,
): Command {
  return withContext(command).action(async (...args: unknown[]) => {
    const context = contextOf(args.at(-1) as Command);
    if (context === undefined) return local(...args);
    if (context.kind === 'account' && ofTenant !== undefined) return ofTenant(context, ...(args as never[]));
    const { withOperatorServer } = await import('./operator-server.ts');
    await withOperatorServer(context, product, (perform) => body({ clock: systemClock, perform }, ...args));
  });
}
