import type { Command } from 'commander';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { onMarketplaceDatabase } from './database.ts';

/**
 * Adds the marketplace's actions to the command of their noun. A command has no providers to ask. Other commands do not
 * load the actions: they start faster.
 */
export function withMarketplaceActions(noun: Command): Command {
  return addActions<OperationDeps>(noun, operations, (command, body) =>
    onMarketplaceDatabase(command, (deps, ...args) =>
      body(deps as typeof deps & OperationDeps, ...(args as never)),
    ),
  );
}
