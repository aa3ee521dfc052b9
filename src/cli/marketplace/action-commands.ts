import { Command } from 'commander';
import { marketplaceStores } from '../../compose/stores/marketplace.ts';
import type { CommandDeps as Deps } from '../../marketplace/operate/commands.ts';
import { commands } from '../../marketplace/operate/commands.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { localTarget, onTarget } from '../context/target.ts';
import { actionOn, withDatabase } from '../database.ts';
import { withOperatorKeys } from '../operators-command.ts';
import { loadMarketplaceFor, onMarketplaceDatabase } from './database.ts';

/**
 * Creates a command that has only views and actions, which cannot ask providers; only an alert needs their catalogs.
 * Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = new Command(name);
  return addActions<OperationDeps & Deps>(noun, [...operations, ...commands], (command, body) => {
    const needsCatalogs = name === 'alerts' && command.name() === 'create';
    const local = actionOn(marketplaceStores, loadMarketplaceFor, async (deps, ...args: unknown[]) => {
      const run = (sellers?: Deps['sellers']) =>
        body(localTarget({ ...deps, sellers } as typeof deps & OperationDeps & Deps), ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      return withProviders(deps.config, deps.store, run);
    });
    return onTarget('marketplace', withDatabase(command, 'marketplace'), local, body);
  });
}

/** Creates `berth marketplace operators`. */
export function marketplaceOperatorsCommand(): Command {
  const name = 'berth marketplace operators';
  return withOperatorKeys(marketplaceActionCommand('operators'), onMarketplaceDatabase, name);
}
