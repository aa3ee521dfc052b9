import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ObservedMachine, ObservedVolume, PlatformDriver } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { Failpoint } from './call-platform.ts';
import type { LossCap } from './loss-cap.ts';
import type { NotFoundGuard } from './not-found-guard.ts';
import type { ReconcileOptions } from './options.ts';
import type { PlatformHealth } from './platform-health.ts';
import type { RestoreHold } from './restore-hold.ts';
import type { SharedListing } from './shared-listing.ts';

/** What the steps of durable work use. */
export interface ReconcileContext {
  store: Store;
  /** Of this database, on the platform. */
  installationId: string;
  driver: PlatformDriver;
  probe: SshProbe;
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  health: PlatformHealth;
  /** Decides which ids may be answered 404, and knows whether a restored database lacks rows. */
  notFoundGuard: NotFoundGuard;
  /** The resources whose work waits after a restore. */
  restoreHold: RestoreHold;
  /** The platform's listings, shared by the drift detector and by every proof of absence. */
  machines: SharedListing<ObservedMachine>;
  /** Undefined where the platform has no volumes. */
  volumes: SharedListing<ObservedVolume> | undefined;
  losses: LossCap;
  options: ReconcileOptions;
  failpoint: Failpoint;
}
