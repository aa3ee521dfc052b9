import { Counter, Histogram, Registry } from 'prom-client';
import {
  answerOf,
  type CertificateList,
  cachedFigure,
  type Figures,
  orZero,
  ServerMetrics,
  secondsOverdue,
} from '../../http/api/metrics.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Alarms } from '../alarms/alarms.ts';
import { activeCordons } from '../capacity/cordons.ts';
import { freeUnits, type Supply } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { alarmKinds } from '../model/alarm.ts';
import { failureCauses } from '../model/failure.ts';
import { markOf } from '../model/marks.ts';
import type { Store } from '../model/store.ts';
import {
  CALL_BUCKETS,
  type EndedStep,
  ONLINE_BUCKETS,
  type Telemetry,
  type TimedCall,
} from '../model/telemetry.ts';
import { instanceWorkKinds } from '../model/work.ts';

/** The state of one platform for the metrics. */
interface PlatformState {
  health: { isUp: boolean; isSuspect: boolean };
  losses: { held: number };
  inventory: { ageMs: number; freeUnits: ReadonlyMap<string, number> };
}

interface Deps {
  version: string;
  store: Store;
  clock: Clock;
  /** The configured platforms by name. */
  platforms: ReadonlyMap<string, PlatformState>;
  writes: { areWritesTaken: boolean };
  alarms: Pick<Alarms, 'listOpen'>;
  work: WorkMetrics;
  catalog: Catalog;
  supply: Supply;
  diskRoom?: (() => Promise<{ free: number; size: number } | undefined>) | undefined;
  certificates: CertificateList;
}

/** The figures of /metrics. */
export class Metrics extends ServerMetrics {
  #polledReads = 0;

  constructor(deps: Deps) {
    super({
      version: deps.version,
      clock: deps.clock,
      certificates: deps.certificates,
      prefix: 'berth',
      requests: 'Requests answered, excluding those in berth_polled_reads_total.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      hasProcessMetrics: true,
    });
    this.counter(
      'berth_polled_reads_total',
      'Reads of GET /v1/instances/{id} answered from memory, bypassing the app.',
      () => this.#polledReads,
    );
    this.include(deps.work);
    this.#addPlatformMetrics(deps);
    this.#addCapacityMetrics(deps);
    this.#addWorkMetrics(deps);
    this.#addReplicationMetrics(deps);
    this.#addAlarmMetrics(deps);
    this.addDiskMetrics('berth', async () => deps.diskRoom?.());
  }

  /**
   * Counts a polled read. They are counted apart from other requests, since a polled read may cost no more than one
   * addition.
   */
  countPolledRead(): void {
    this.#polledReads++;
  }

  #addPlatformMetrics({ platforms, store: { read } }: Deps): void {
    const add = (
      name: string,
      help: string,
      figure: (platform: PlatformState, name: string) => number | Promise<number>,
    ): void =>
      this.gaugeBy('platform', name, help, () =>
        Promise.all([...platforms].map(async ([name, state]) => [name, await figure(state, name)] as const)),
      );
    add('berth_platform_up', 'Whether the platform answers and its listing is trusted.', ({ health }) =>
      Number(health.isUp),
    );
    add(
      'berth_platform_suspect',
      'Whether the platform answers but its listing is not trusted.',
      ({ health }) => Number(health.isSuspect),
    );
    add('berth_losses_held', 'Instances that `berth losses accept` would end.', ({ losses }) => losses.held);
    add(
      'berth_inventory_age_seconds',
      'Age of the last count of free units on the platform, in seconds. After 600 the platform stops selling.',
      ({ inventory }) => inventory.ageMs / 1000,
    );
    this.gaugeBy(
      'offer',
      'berth_platform_units_free',
      'Machines that the platform reports it could create now.',
      async () => [...platforms.values()].flatMap(({ inventory }) => [...inventory.freeUnits]),
    );
    add(
      'berth_volumes_doubted',
      'Whether too many volumes are missing, so that no volume counts as deleted.',
      async (_state, name) =>
        Number(((await answerOf(read.marks.get(markOf(name, 'volumes_doubted_since')))) ?? null) !== null),
    );
  }

  #addCapacityMetrics({ store: { read }, clock, catalog, supply }: Deps): void {
    const claims = cachedFigure(clock, () => read.claims.use());
    const storage = cachedFigure(clock, () => read.storageClaims.use());
    const standing = cachedFigure(clock, () => activeCordons(read, clock.now()));
    const add = (
      name: string,
      help: string,
      figure: (placement: { units: number; claimed: number; free: number }) => number,
    ): void =>
      this.gaugeByAll(['offer', 'region'], name, help, async () => {
        const [use, cordons] = await Promise.all([claims(), standing()]);
        if (use === undefined || cordons === undefined) return undefined;
        const unitsOf = freeUnits({ catalog, supply, cordons }, use);
        return [...catalog.offers.values()].flatMap((offer) =>
          offer.placements.map(({ region, units }) => {
            const labels = { offer: offer.id, region };
            return [labels, figure({ units, ...unitsOf({ offer, region }) })] as const;
          }),
        );
      });
    add('berth_offer_units', 'Units of an offer in a region, from the catalog.', ({ units }) => units);
    add('berth_offer_units_claimed', 'Units that instances hold.', ({ claimed }) => claimed);
    add(
      'berth_offer_units_available',
      'Units available now; 0 while the offer, its region or its platform is not for sale.',
      ({ free }) => free,
    );
    this.gaugeBy('region', 'berth_storage_claimed_gb', 'Storage that volumes hold, in GB.', async () =>
      (await storage())?.map(({ region, claimedGb }) => [region, claimedGb] as const),
    );
    this.gaugeBy(
      'region',
      'berth_storage_gb',
      'Storage of a region for volumes, in GB, where the catalog sets a limit.',
      async () =>
        [...catalog.regions.values()].flatMap(({ token, storageGb }) =>
          storageGb === undefined ? [] : [[token, storageGb] as const],
        ),
    );
  }

  #addWorkMetrics({ store: { read }, clock, writes }: Deps): void {
    const countByStatus = cachedFigure(clock, () => read.instances.countByStatus());
    const backlog = cachedFigure(clock, () => read.work.backlog());
    const countByStep = cachedFigure(clock, () => read.work.countInstancesByStep());
    this.gaugeBy('status', 'berth_instances', 'Instances that are not destroyed.', async () =>
      (await countByStatus())?.map(({ status, count }) => [status, count] as const),
    );
    this.gauge(
      'berth_store_up',
      'Whether the database answers and takes writes. If not, the metrics counted in it are missing.',
      async () =>
        Number((await answerOf(read.marks.get('restored_from'))) !== undefined && writes.areWritesTaken),
    );
    this.gauge(
      'berth_work_open',
      'Steps of durable work that are not finished.',
      async () => (await backlog())?.count ?? Number.NaN,
    );
    this.gauge(
      'berth_work_overdue_seconds',
      'Time since the longest-waiting step of durable work became due, retries included.',
      async () => secondsOverdue((await backlog())?.oldestDueAt, clock.now()),
    );
    this.gaugeBy(
      'step',
      'berth_instances_waiting',
      'Instances with an unfinished step of work; `verify` waits for SSH.',
      async () =>
        orZero(
          instanceWorkKinds,
          (await countByStep())?.map(({ step, count }) => [step, count]),
        ),
    );
  }

  #addAlarmMetrics({ alarms, writes }: Deps): void {
    this.addAlarmMetrics('berth', alarms, alarmKinds, (counts) =>
      counts.set('store_unwritable', Number(!writes.areWritesTaken)),
    );
  }

  #addReplicationMetrics({ store, clock }: Deps): void {
    this.gauge('berth_commits_heard', 'Whether this server receives the commits of other servers.', () =>
      Number(store.isCommitFeedLive()),
    );
    this.gauge(
      'berth_clock_offset_seconds',
      "How far this server's clock is ahead of the database's, if several servers share it.",
      () => (clock.offsetMs?.() ?? 0) / 1000,
    );
  }
}

/**
 * Metrics of this server's work since its start. Each label has a closed set of values, or those of the configuration.
 */
export class WorkMetrics implements Figures {
  readonly #registry = new Registry();
  readonly #calls: Counter<'platform' | 'call' | 'outcome'>;
  readonly #callSeconds: Histogram<'platform' | 'call'>;
  readonly #steps: Counter<'platform' | 'resource' | 'step' | 'next'>;
  readonly #online: Histogram<'offer'>;
  readonly #failed: Counter<'platform' | 'cause'>;

  constructor() {
    const registers = [this.#registry];
    this.#calls = new Counter({
      name: 'berth_platform_calls_total',
      help: 'Finished calls to the platform and SSH proofs (`ssh`), by outcome or reason for failure.',
      labelNames: ['platform', 'call', 'outcome'],
      registers,
    });
    this.#callSeconds = new Histogram({
      name: 'berth_platform_call_seconds',
      help: 'Duration of these calls.',
      labelNames: ['platform', 'call'],
      buckets: CALL_BUCKETS,
      registers,
    });
    this.#steps = new Counter({
      name: 'berth_steps_total',
      help: 'Finished steps of work, by what follows: another step, `again`, `finish`; `error`: internal error; `lost`: the lease was lost and nothing was written.',
      labelNames: ['platform', 'resource', 'step', 'next'],
      registers,
    });
    this.#online = new Histogram({
      name: 'berth_instance_online_seconds',
      help: 'Time from the create request until the instance is first ONLINE.',
      labelNames: ['offer'],
      buckets: ONLINE_BUCKETS,
      registers,
    });
    this.#failed = new Counter({
      name: 'berth_instances_failed_total',
      help: 'Instances that went to ERROR, by cause: the code of the failed call, `late`, `ssh`, `machine_failed`, `machine_gone`, `powered_off` or `not_stopped`.',
      labelNames: ['platform', 'cause'],
      registers,
    });
  }

  metrics(): Promise<string> {
    return this.#registry.metrics();
  }

  /** The telemetry of one platform's work. */
  of(platform: string): Telemetry {
    // Starts each series at 0. A series that begins with its first failure shows no rate.
    for (const cause of failureCauses) this.#failed.inc({ platform, cause }, 0);
    return {
      called: (call) => this.#countCall(platform, call),
      stepEnded: (step) => this.#countStep(platform, step),
    };
  }

  #countCall(platform: string, { call, outcome, tookMs }: TimedCall): void {
    this.#calls.inc({ platform, call, outcome });
    this.#callSeconds.observe({ platform, call }, tookMs / 1000);
  }

  #countStep(platform: string, { lease: { kind, resourceKind }, next, verdict }: EndedStep): void {
    this.#steps.inc({ platform, resource: resourceKind, step: kind, next });
    if (verdict?.status === 'ONLINE')
      this.#online.observe({ offer: verdict.offerId }, verdict.afterMs / 1000);
    if (verdict?.status === 'ERROR') this.#failed.inc({ platform, cause: verdict.cause });
  }
}
