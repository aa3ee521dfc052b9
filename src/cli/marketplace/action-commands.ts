import type { Command } from 'commander';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { onMarketplaceDatabase } from './database.ts';

/**
 * Adds the marketplace's actions to the command of their noun. In a command, actions cannot ask providers. Other
 * commands do not load the actions, so that they start faster.
 */
export function withMarketplaceActions(noun: Command): Command {
  return addActions<OperationDeps>(noun, operations, (command, body) =>
    onMarketplaceDatabase(command, (deps, ...args) =>
      body(deps as typeof deps & OperationDeps, ...(args as never)),
    ),
  );
}
