import { Command } from 'commander';
import type { CommandDeps as Deps } from '../../marketplace/operate/commands.ts';
import { commands } from '../../marketplace/operate/commands.ts';
import { type OperationDeps, operations } from '../../marketplace/operate/operations.ts';
import { addActions } from '../add-actions.ts';
import { withOperatorKeys } from '../operators-command.ts';
import { onMarketplaceDatabase } from './database.ts';

/**
 * Creates a command that has only views and actions, which cannot ask providers; only an alert needs their catalogs.
 * Other commands do not load the actions, so that they start faster.
 */
export function marketplaceActionCommand(name: string): Command {
  const noun = new Command(name);
  return addActions<OperationDeps & Deps>(noun, [...operations, ...commands], (command, body) => {
    const needsCatalogs = name === 'alerts' && command.name() === 'create';
    return onMarketplaceDatabase<unknown[]>(command, async (deps, ...args) => {
      const alarmRoutes = async () =>
        (await import('../../compose/server/alarm-routes.ts')).createAlarmRoutes(
          deps.config,
          process.env,
          deps.clock,
        );
      const run = (sellers?: Deps['sellers']) =>
        body({ ...deps, sellers, alarmRoutes } as unknown as typeof deps & OperationDeps & Deps, ...args);
      if (!needsCatalogs) return run();
      const { withProviders } = await import('../../compose/marketplace/providers.ts');
      return withProviders(deps.config, deps.store, run);
    });
  });
}

/** Creates `berth marketplace operators`. */
export function marketplaceOperatorsCommand(): Command {
  const name = 'berth marketplace operators';
  return withOperatorKeys(marketplaceActionCommand('operators'), onMarketplaceDatabase, name);
}
