import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ObservedMachine, ObservedVolume, PlatformDriver } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { Telemetry } from '../model/telemetry.ts';
import type { Failpoint } from './call-platform.ts';
import type { PlatformInventory } from './inventory.ts';
import type { LossCap } from './loss-cap.ts';
import type { ReconcileOptions } from './options.ts';
import type { PlatformHealth } from './platform-health.ts';
import type { RestoreHold } from './restore-hold.ts';
import type { RunningEndpoints } from './running-endpoints.ts';
import type { SharedListing } from './shared-listing.ts';
import type { Sightings } from './sightings.ts';
import type { StepTrace } from './step-trace.ts';

/** What the steps of durable work use: one for each platform, which knows nothing of the health of another. */
export interface ReconcileContext {
  store: Store;
  /** The name of the platform, as its rows have it. */
  platform: string;
  /** The names of the others that are configured: what is noted as theirs is not touched here. */
  otherPlatforms: ReadonlySet<string>;
  /** Of this database, on every platform. */
  installationId: string;
  driver: PlatformDriver;
  probe: SshProbe;
  catalog: Catalog;
  clock: Clock;
  random: Random;
  log: Log;
  alarms: Alarms;
  /** Of all platforms of this process. */
  endpoints: RunningEndpoints;
  health: PlatformHealth;
  /** How the platform's listings differ from the rows. */
  sightings: Sightings;
  /** The resources of the platform whose work waits after a restore. */
  restoreHold: RestoreHold;
  /** The platform's listings, shared by the drift detector and by every proof of absence. */
  machines: SharedListing<ObservedMachine>;
  /** Undefined where the platform has no volumes. */
  volumes: SharedListing<ObservedVolume> | undefined;
  losses: LossCap;
  inventory: PlatformInventory;
  options: ReconcileOptions;
  /** Aborted when this process ends its work. */
  stopping: AbortSignal;
  failpoint: Failpoint;
  telemetry?: Telemetry;
  /** Of the step that runs. */
  trace?: StepTrace;
}
