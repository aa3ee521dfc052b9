import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Fleet } from './fleet.ts';
import type { LibvirtConfig } from './options.ts';

/** The driver's dependencies. */
export interface Platform {
  fleet: Fleet;
  config: LibvirtConfig;
  catalog: Catalog;
  clock: Clock;
  log: Log;
}
