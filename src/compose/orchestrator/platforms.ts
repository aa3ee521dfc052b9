import type { Config } from '../../config/schema.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Alarms } from '../../orchestrator/alarms/alarms.ts';
import type { Supply } from '../../orchestrator/capacity/deployable.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Manifests, PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { Telemetry } from '../../orchestrator/model/telemetry.ts';
import type { Failpoint } from '../../orchestrator/platform/call-platform.ts';
import { confirmMachine } from '../../orchestrator/platform/confirm-gone.ts';
import type { ReconcileContext } from '../../orchestrator/platform/context.ts';
import { ExpectedMachines } from '../../orchestrator/platform/expected-machines.ts';
import { PlatformInventory, PlatformVolumeUsage } from '../../orchestrator/platform/inventory.ts';
import { LossCap } from '../../orchestrator/platform/loss-cap.ts';
import { defaultReconcileOptions, type ReconcileOptions } from '../../orchestrator/platform/options.ts';
import { PlatformHealth } from '../../orchestrator/platform/platform-health.ts';
import { SharedListing } from '../../orchestrator/platform/shared-listing.ts';
import { RestoreHold, Sightings } from '../../orchestrator/platform/sightings.ts';
import { judgeMachines, judgeVolumes } from '../../orchestrator/platform/validate-listing.ts';
import { WriterMark } from '../../orchestrator/platform/writer-mark.ts';
import { Reconciler } from '../../orchestrator/queue/reconciler.ts';
import { adoptAsNew, releaseMachine } from '../../orchestrator/reconciliation/adopt-machine.ts';
import { DriftDetector } from '../../orchestrator/reconciliation/drift-detector.ts';
import { restoredFrom } from '../../orchestrator/reconciliation/restored-rows.ts';
import { type OrphanOutcome, recordingMissingRows } from '../../orchestrator/reconciliation/without-row.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { callTimeoutMs, listPauseMs } from '../../work/lease-time.ts';
import { logOf } from '../drivers/driver-settings.ts';

export type Drivers = ReadonlyMap<string, PlatformDriver>;

/** The state of one platform, before its first listing. */
export interface PlatformState {
  driver: PlatformDriver;
  log: Log;
  health: PlatformHealth;
  losses: LossCap;
  sightings: Sightings;
  inventory: PlatformInventory;
  volumeUsage: PlatformVolumeUsage;
  telemetry: Telemetry;
}
export type PlatformStates = ReadonlyMap<string, PlatformState>;

interface StateDeps {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  log: Log;
  alarms: Alarms;
  options: ReconcileOptions;
  telemetryOf: (platform: string) => Telemetry;
}

/** Creates the state of each platform. A failing platform does not affect the others. */
export function createPlatformStates(drivers: Drivers, deps: StateDeps): PlatformStates {
  const { store, clock, alarms, options } = deps;
  return new Map(
    [...drivers].map(([platform, driver]): [string, PlatformState] => {
      const log = logOf(platform, drivers.size, deps.log);
      const telemetry = deps.telemetryOf(platform);
      const state = {
        driver,
        telemetry,
        log,
        health: new PlatformHealth({ store, clock, log, alarms, platform }),
        losses: new LossCap({ clock, log, alarms, options }),
        sightings: new Sightings({ store, clock, platform, options }),
        volumeUsage: new PlatformVolumeUsage({ driver, clock, options, telemetry }),
        inventory: new PlatformInventory({ ...deps, platform, driver, log, telemetry }),
      };
      return [platform, state];
    }),
  );
}

/**
 * Combines the capacity of all platforms. An offer belongs to one platform; machines and volumes without a row reduce
 * the free capacity of any.
 */
export function supplyOf(states: PlatformStates): Supply {
  const sightings = [...states.values()].map((state) => state.sightings);
  const sum = (count: (of: Sightings) => number): number =>
    sightings.reduce((total, of) => total + count(of), 0);
  return {
    isOpen(platform) {
      const state = states.get(platform);
      return state?.health.isUp === true && state.sightings.areClaimsComplete;
    },
    unclaimedUnits: (offerId, region) => sum((of) => of.unclaimedUnits(offerId, region)),
    platformUnits: ({ id, platform }, region, changedAt) =>
      states.get(platform)?.inventory.capacity(id, region, changedAt),
    obstacles: ({ id, platform }, region) => states.get(platform)?.inventory.obstacles(id, region) ?? [],
    isCountPartial: (platform) => states.get(platform)?.inventory.isPartial === true,
    areStorageClaimsComplete: (platform) => states.get(platform)?.sightings.areStorageClaimsComplete === true,
    unclaimedStorageGb: (region) => sum((of) => of.unclaimedStorageGb(region)),
  };
}

export function manifestsOf(drivers: Drivers): Manifests {
  return {
    of({ platform }) {
      const driver = drivers.get(platform);
      if (driver === undefined)
        throw new ApiError('unavailable', 'Another server serves the platform of this resource; try again.');
      return driver.manifest;
    },
  };
}

interface ReconcilingDeps
  extends Pick<ReconcileContext, 'installationId' | 'options' | 'alarms' | 'endpoints'> {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  random: Random;
  probe: SshProbe;
  failpoint: Failpoint;
}

export interface PlatformWork {
  platform: string;
  /** Lists the platform for the first time, and starts the work. */
  start(): Promise<void>;
  /** Adopts an orphaned machine into a new instance, or removes Berth's mark from it. */
  actOnOrphan: (action: 'adopt' | 'release', ref: string) => Promise<OrphanOutcome>;
  /** Releases all callers that wait for a listing. */
  stopListing(): void;
  /** Waits for running steps to end. */
  stop(): Promise<void>;
}

/** Composes the reconciliation of one platform's rows. */
export function composeWork(
  platform: string,
  { driver, ...state }: PlatformState,
  otherPlatforms: ReadonlySet<string>,
  deps: ReconcilingDeps,
): PlatformWork {
  const base = { ...deps, ...state, driver, platform, otherPlatforms };
  const expected = new ExpectedMachines(deps.store, platform);
  const writer = new WriterMark({
    ...base,
    by: `process ${process.pid} of ${deps.alarms.server}`,
    isRestored: async () => (await restoredFrom(base)) !== null,
  });
  const judge = recordingMissingRows(
    base,
    'instance',
    writer.guard(judgeMachines(base, expected)),
    (ref) => expected.get(ref) !== undefined,
  );
  const machines = new SharedListing(base, () => driver.list(), judge);
  const { volumes: volumeDriver } = driver;
  // With a revoked key, a platform lists no volumes, as if it had none. Only the list of machines shows the difference.
  const showsMachines = async (): Promise<boolean> => (await machines.observe())?.isTrusted === true;
  const volumes =
    volumeDriver &&
    new SharedListing(
      base,
      () => volumeDriver.list(),
      recordingMissingRows(base, 'volume', writer.guard(judgeVolumes(base))),
      showsMachines,
    );
  const stopping = new AbortController();
  const context: ReconcileContext = {
    ...base,
    machines,
    volumes,
    restoreHold: new RestoreHold(),
    stopping: stopping.signal,
  };
  const reconciler = new Reconciler(context);
  const drift = new DriftDetector(context, expected, () => reconciler.start());
  return {
    platform,
    start: () => drift.start(),
    actOnOrphan: async (action, ref) => {
      if (state.health.isTaken) return 'unknown';
      const found = await confirmMachine(context, { ownerRef: ref, host: null });
      if (found.answer !== 'observed') return found.answer;
      return action === 'adopt' ? adoptAsNew(context, found.value) : releaseMachine(context, found.value);
    },
    stopListing: () => {
      machines.stop();
      volumes?.stop();
    },
    stop: async () => {
      await drift.stop();
      stopping.abort();
      await reconciler.stop();
    },
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Options of the durable work that differ from the defaults and from berth.yaml. */
export type ReconcileChanges = Partial<Omit<ReconcileOptions, 'callTimeoutMs' | 'listPauseMs'>>;

/** Adds the times of `retention:` of berth.yaml to the default options. */
export function toReconcileOptions(
  { retention: { failed_machines_minutes: failedMinutes, lost_disks_hours: diskHours } }: Config,
  changes: ReconcileChanges = {},
): ReconcileOptions {
  const options = {
    ...defaultReconcileOptions,
    holdFailedMs: failedMinutes === undefined ? null : failedMinutes * MINUTE_MS,
    keepDisksMs: diskHours * HOUR_MS,
    ...changes,
  };
  const { leaseMs } = options;
  return { ...options, callTimeoutMs: callTimeoutMs(leaseMs), listPauseMs: listPauseMs(leaseMs) };
}
