import { Command } from 'commander';
import type { CommandDeps as Deps } from '../../marketplace/operate/commands.ts';
import { commands } from '../../marketplace/operate/commands.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { withOperatorKeys } from '../operators-command.ts';
import { onMarketplaceDatabase } from './database.ts';

const NEED_CATALOGS: ReadonlySet<string> = new Set([
  'alerts create',
  'deployments terminate',
  'deployments stop',
  'deployments restart',
  'volumes rm',
  'sales pause',
]);

/**
 * Creates a command that has only views and actions, which do not call providers; some need their catalogs. Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = new Command(name);
  return addActions<OperationDeps & Deps>(noun, [...operations, ...commands], (command, body) => {
    const needsCatalogs = NEED_CATALOGS.has(`${name} ${command.name()}`);
    return onMarketplaceDatabase<unknown[]>(command, async (deps, ...args) => {
      const run = (more?: Pick<OperationDeps, 'sellers' | 'options' | 'log'>) =>
        body({ ...deps, ...more } as typeof deps & OperationDeps & Deps, ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      const { toMarketplaceOptions } = await import('../../compose/marketplace/options.ts');
      const { createLog } = await import('../../runtime/log.ts');
      const more = { options: toMarketplaceOptions(deps.config), log: createLog('silent') };
      return withProviders(deps.config, deps.store, (sellers) => run({ sellers, ...more }));
    });
  });
}

/** Creates `berth marketplace operators`. */
export function marketplaceOperatorsCommand(): Command {
  const name = 'berth marketplace operators';
  return withOperatorKeys(marketplaceActionCommand('operators'), onMarketplaceDatabase, name);
}
