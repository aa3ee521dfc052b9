import { Command } from 'commander';
import { marketplaceStores } from '../../compose/stores/marketplace.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { localTarget, onTarget } from '../context/target.ts';
import { actionOn, withDatabase } from '../database.ts';
import { loadMarketplaceFor } from './database.ts';

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
  return addActions<OperationDeps>(noun, operations, (command, body) => {
    const needsCatalogs = NEED_CATALOGS.has(`${name} ${command.name()}`);
    const local = actionOn(marketplaceStores, loadMarketplaceFor, async (deps, ...args: unknown[]) => {
      const selling = deps.config.providers.filter(({ retired }) => !retired);
      const alarmRoutes = async () =>
        (await import('../../compose/server/alarm-routes.ts')).createAlarmRoutes(
          deps.config,
          process.env,
          deps.clock,
        );
      const known = {
        ...deps,
        alarmRoutes,
        providers: () => new Map(selling.map(({ id }) => [id, null])),
        maxLosses: defaultOptions.maxLosses,
      };
      const run = (more?: Pick<OperationDeps, 'sellers' | 'options' | 'log'>) =>
        body(localTarget({ ...known, ...more } as typeof known & OperationDeps), ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      const { toMarketplaceOptions } = await import('../../compose/marketplace/options.ts');
      const { createLog } = await import('../../runtime/log.ts');
      const more = { options: toMarketplaceOptions(deps.config), log: createLog('silent') };
      return withProviders(deps.config, deps.store, (sellers) => run({ sellers, ...more }));
    });
    return onTarget('marketplace', withDatabase(command, 'marketplace'), local, body);
  });
}
