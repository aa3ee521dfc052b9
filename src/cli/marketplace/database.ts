import type { Command } from 'commander';
import { type MarketplaceStoreDeps, marketplaceStores } from '../../compose/stores/marketplace.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { type AuditedAction, audited } from '../../operators/audit.ts';
import { addActions } from '../action-commands.ts';
import { actionOn, type Body, withDatabase } from '../database.ts';
import { localActor } from '../local-actor.ts';

/** The dependencies of the marketplace's commands. */
export type CommandDeps = MarketplaceStoreDeps & { config: MarketplaceConfig };

export function withAllowPrivate(command: Command): Command {
  return command.option('--allow-private', 'providers may be at private addresses and speak plain http');
}

/** Loads the configuration of `berth marketplace`. The flags may be before or after the command's name. */
export function loadMarketplaceFor(command: Command): MarketplaceConfig {
  const {
    config: file,
    database,
    allowPrivate,
  } = command.optsWithGlobals<{
    config?: string;
    database?: string;
    allowPrivate?: true;
  }>();
  return loadMarketplaceConfig({ file, flags: { database, allowPrivate }, env: process.env });
}

/** Performs an action in the name of the local user, with a row in the audit log. */
export function auditedHere<T>(
  deps: CommandDeps,
  action: AuditedAction<T>,
  act: (deps: CommandDeps) => Promise<T>,
): Promise<T> {
  return audited(deps, localActor(), action, (store) => act({ ...deps, store }));
}

/** Runs `body` on the database of `berth marketplace` with the same flags, even while it runs. */
export function onMarketplaceDatabase<Args extends unknown[]>(
  command: Command,
  body: Body<CommandDeps, Args>,
): Command {
  return withDatabase(command, 'marketplace').action(actionOn(marketplaceStores, loadMarketplaceFor, body));
}

/** Adds the marketplace's actions to the command of their noun. A command has no providers to ask. */
export function withMarketplaceActions(noun: Command): Command {
  return addActions<OperationDeps>(noun, operations, (command, body) =>
    onMarketplaceDatabase(command, (deps, ...args) =>
      body(deps as typeof deps & OperationDeps, ...(args as never)),
    ),
  );
}
