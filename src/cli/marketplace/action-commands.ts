import { Command } from 'commander';
import { marketplaceStores } from '../../compose/stores/marketplace.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { localTarget, onTarget } from '../context/target.ts';
import { actionOn, withDatabase } from '../database.ts';
import { loadMarketplaceFor } from './database.ts';

/**
 * Creates a command that has only views and actions, which cannot ask providers; only an alert needs their catalogs.
 * Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = new Command(name);
  return addActions<OperationDeps>(noun, operations, (command, body) => {
    const needsCatalogs = name === 'alerts' && command.name() === 'create';
    const local = actionOn(marketplaceStores, loadMarketplaceFor, async (deps, ...args: unknown[]) => {
      const providers = () => new Map(deps.config.providers.map(({ id }) => [id, null]));
      const { maxLosses } = defaultOptions;
      const run = (sellers?: OperationDeps['sellers']) =>
        body(localTarget({ ...deps, providers, maxLosses, sellers } as typeof deps & OperationDeps), ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      return withProviders(deps.config, deps.store, run);
    });
    return onTarget('marketplace', withDatabase(command, 'marketplace'), local, body);
  });
}
