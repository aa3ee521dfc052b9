import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ObservedMachine, ObservedVolume, PlatformDriver } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { StepTrace, Telemetry } from '../model/telemetry.ts';
import type { Failpoint } from './call-platform.ts';
import type { PlatformInventory } from './inventory.ts';
import type { LossCap } from './loss-cap.ts';
import type { ReconcileOptions } from './options.ts';
import type { PlatformHealth } from './platform-health.ts';
import type { SharedListing } from './shared-listing.ts';
import type { RestoreHold, RunningEndpoints, Sightings } from './sightings.ts';

/** For deciding and recording: the rows of one platform, the operator's settings, and how problems are reported. */
export interface Recording {
  store: Store;
  /** The name of the platform, as in its rows. */
  platform: string;
  clock: Clock;
  random: Random;
  log: Log;
  alarms: Alarms;
  options: ReconcileOptions;
  /** Whether the platform is trusted: nothing final is written otherwise. */
  health: PlatformHealth;
  losses: LossCap;
  failpoint: Failpoint;
  telemetry?: Telemetry;
  /** The trace of the running step. */
  trace?: StepTrace;
}

/** For calling one platform. */
export interface Calling {
  driver: PlatformDriver;
  probe: SshProbe;
  catalog: Catalog;
  /** The id of this database, the same on every platform. */
  installationId: string;
  /** The names of the other configured platforms. Resources whose note names one of them are not touched. */
  otherPlatforms: ReadonlySet<string>;
  /** The platform's machine listings, shared by the drift detector and every proof of absence. */
  machines: SharedListing<ObservedMachine>;
  /** Undefined if the platform has no volumes. */
  volumes: SharedListing<ObservedVolume> | undefined;
  /** Aborted when this process stops. */
  stopping: AbortSignal;
}

/** What the listings of one platform have shown. */
export interface Facts {
  /** The differences between the platform's listings and the rows. */
  sightings: Sightings;
  /** The platform's resources whose work waits after a restore. */
  restoreHold: RestoreHold;
  inventory: PlatformInventory;
  /** Shared by all platforms of this process. */
  endpoints: RunningEndpoints;
}

/** Everything about one platform. Each platform has its own, independent of the health of the others. */
export type ReconcileContext = Recording & Calling & Facts;
