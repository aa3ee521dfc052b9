import { Command } from 'commander';
import { platformFactsOf } from '../compose/drivers/driver-settings.ts';
import { toReconcileOptions } from '../compose/orchestrator/platforms.ts';
import type { StoreDeps } from '../compose/stores/orchestrator.ts';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import { type OperationDeps, operations } from '../orchestrator/operate/operations.ts';
import { addActions } from './add-actions.ts';
import { withOperatorKeys } from './operators-command.ts';
import { onDatabase } from './orchestrator-database.ts';

/** Adds the orchestrator's views and actions to the command of their noun. */
export function withActions(noun: Command): Command {
  return addActions<OperationDeps>(noun, operations, (command, body) =>
    onDatabase<unknown[]>(command, (deps, ...args) => body(toOperationDeps(deps), ...args)),
  );
}

/** Creates `berth operators`. */
export function operatorsCommand(): Command {
  return withActions(withOperatorKeys(new Command('operators'), onDatabase, 'berth operators'));
}

/**
 * Collects what actions need from a command's dependencies. A command has no driver to ask and no server to reload;
 * actions with a command need neither.
 */
function toOperationDeps({ config, ...deps }: StoreDeps & { config: Config }): OperationDeps {
  let loaded: Catalog | undefined;
  const load = (): Catalog => (loaded ??= loadCatalog(config.catalog, sellingPlatforms(config)));
  // Most commands need no catalog, and work if it has an error.
  const catalog: Catalog = {
    get regions() {
      return load().regions;
    },
    get offers() {
      return load().offers;
    },
  };
  const { maxLosses } = toReconcileOptions(config);
  const alarmRoutes = async () =>
    (await import('../compose/server/alarm-routes.ts')).createAlarmRoutes(config, process.env, deps.clock);
  const known = { ...deps, alarmRoutes, catalog, platforms: platformFactsOf(config), maxLosses };
  return known as typeof known & OperationDeps;
}
