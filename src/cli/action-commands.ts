import type { Command } from 'commander';
import { platformFactsOf } from '../compose/drivers/driver-settings.ts';
import { toReconcileOptions } from '../compose/orchestrator/platforms.ts';
import { lastBackupOf } from '../compose/server/backups.ts';
import { orchestratorStores, type StoreDeps } from '../compose/stores/orchestrator.ts';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import { type OperationDeps, operations } from '../orchestrator/operate/operations.ts';
import { addActions } from './add-actions.ts';
import { localTarget, type OfTenant, onTarget, type Target } from './context/target.ts';
import { actionOn, type Body, withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';

/** Adds the orchestrator's views and actions to the command of their noun. */
export function withActions(noun: Command, ofTenants: Readonly<Record<string, OfTenant>> = {}): Command {
  return addActions<OperationDeps>(noun, operations, (command, body) =>
    onOrchestrator(command, body, ofTenants[command.name()]),
  );
}

/** Runs `body` on the database of `berth serve`, or on the server of the context. */
export function onOrchestrator(
  command: Command,
  body: Body<Target<OperationDeps>, unknown[]>,
  ofTenant?: OfTenant,
): Command {
  const local = actionOn(orchestratorStores, loadFor, (deps, ...args: unknown[]) =>
    body(localTarget(toOperationDeps(deps)), ...args),
  );
  return onTarget('orchestrator', withDatabase(command), local, body, ofTenant);
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
  const lastBackup = lastBackupOf(config.backups, 'berth', deps.clock);
  const alarmRoutes = async () =>
    (await import('../compose/server/alarm-routes.ts')).createAlarmRoutes(config, process.env, deps.clock);
  const known = {
    ...deps,
    alarmRoutes,
    catalog,
    platforms: platformFactsOf(config),
    maxLosses,
    ...(lastBackup && { lastBackup }),
  };
  return known as typeof known & OperationDeps;
}
