import { Command } from 'commander';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { onMarketplaceDatabase } from './database.ts';

/**
 * Creates a command that has only views and actions, which cannot ask providers; only an alert needs their catalogs.
 * Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = new Command(name);
  return addActions<OperationDeps>(noun, operations, (command, body) => {
    const needsCatalogs = name === 'alerts' && command.name() === 'create';
    return onMarketplaceDatabase<unknown[]>(command, async (deps, ...args) => {
      const providers = () => new Map(deps.config.providers.map(({ id }) => [id, null]));
      const { maxLosses } = defaultOptions;
      const run = (sellers?: OperationDeps['sellers']) =>
        body({ ...deps, providers, maxLosses, sellers } as typeof deps & OperationDeps, ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      return withProviders(deps.config, deps.store, run);
    });
  });
}
