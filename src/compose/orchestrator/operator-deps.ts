import type { Config } from '../../config/schema.ts';
import { platformFactsOf } from '../drivers/driver-settings.ts';
import { lastBackupOf } from '../server/backups.ts';
import type { Orchestrator } from './orchestrator.ts';

/** The dependencies of an orchestrator's operator API, except for how operators are authenticated. */
export function operatorDepsOf(
  { adminParts, reload }: Pick<Orchestrator, 'adminParts' | 'reload'>,
  config: Config,
) {
  const { http, facts, store, maxLosses, alarmRoutes } = adminParts;
  const configured = platformFactsOf(config);
  const lastBackup = lastBackupOf(config.backups, 'berth', http.clock);
  return {
    ...http,
    ...(lastBackup && { lastBackup }),
    store,
    maxLosses,
    alarmRoutes,
    reload,
    supply: http.supply,
    platforms: new Map(
      [...facts].map(([name, found]) => [name, { placesOnHosts: false, ...configured.get(name), ...found }]),
    ),
  };
}
