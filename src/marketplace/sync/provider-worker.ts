import { LeaseLost, type LeaseRecord } from '../../work/lease.ts';
import { RANGES, RangeLeases, rangeOf } from '../../work/range-leases.ts';
import { fencedStore } from '../model/fenced-store.ts';
import type { DeploymentToSync, Signal, Transaction } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import { Observations, type SyncContext, type SyncDeps } from './context.ts';
import { LastAnswers } from './last-answers.ts';
import { AWAITED_MS } from './poll.ts';
import { proveSsh } from './prove-ssh.ts';
import { ProviderHealth, type ProviderWideProblem } from './provider-health.ts';
import { Schedule } from './schedule.ts';
import { sendIntent } from './send-intent.ts';
import { SshAlarm } from './ssh-alarm.ts';
import { StepFailures } from './step-failures.ts';
import { Sweep } from './sweep.ts';
import { syncDeployment } from './sync-deployment.ts';
import { CHANGING_MS, SETTLED_MS, syncVolume } from './volumes/sync-volume.ts';
import { readVolumeUsage, USAGE_MS } from './volumes/usage.ts';

/** How often changes by other processes are read. */
const NEWS_MS = 5_000;
/** How often all deployments are read again, in case one is missing from the schedule. */
const REREAD_MS = 60_000;
/** How often times of confirmation are written. A crash loses up to this much, which is billed later or not at all. */
const FLUSH_MS = 30_000;
const AFTER_FAILURE_MS = 5_000;
const VOLUMES_AT_ONCE = 8;
/** A separate limit, since a host that hangs holds its slot for long. */
const PROOFS_AT_ONCE = 32;

/** The subject of the signal that processes send when they start or stop. */
const RANGES_CHANGED = 'ranges';
/** The process that holds this range does the provider-wide work. */
const CHORES_RANGE = 0;

type Chore = 'catalog' | 'reread' | 'news' | 'flush' | 'sweep' | 'usage';

/** The pause between two reads of the catalog varies by up to a quarter. */
const CATALOG_JITTER = 0.25;

/**
 * Syncs a provider's deployments and volumes in the ranges that this process holds. The holder of the first range also
 * reads the provider's catalog and the use of its volumes, and deletes orphans.
 */
export class ProviderWorker {
  readonly #deps: SyncDeps;
  readonly #provider: Provider;
  readonly #health: ProviderHealth;
  readonly #sshAlarm: SshAlarm;
  readonly #failures: StepFailures;
  /** A context per range, bound to the range's lease: its store rejects writes once another process holds the range. */
  readonly #contexts = new Map<number, SyncContext>();
  readonly #leases: RangeLeases<Transaction>;
  readonly #deployments: Schedule;
  /** A separate schedule, so that requests do not wait for polls that hang. */
  readonly #intents: Schedule;
  readonly #volumes: Schedule;
  readonly #proofs: Schedule;
  readonly #chores: Schedule;
  readonly #sweep = new Sweep();
  readonly #stopping = Promise.withResolvers<void>();
  #catalogReading: Promise<void> | undefined;

  constructor(deps: SyncDeps, provider: Provider, holder: string) {
    const { clock, options } = deps;
    this.#deps = deps;
    this.#provider = provider;
    this.#health = new ProviderHealth(deps, provider.id);
    this.#sshAlarm = new SshAlarm(deps, provider.id);
    this.#failures = new StepFailures(deps, provider.id);
    const scheduleOf = (
      name: string,
      concurrency: () => number,
      step: (context: SyncContext, id: string) => Promise<number | null>,
    ) => {
      const run = (id: string) => this.#guard(name, rangeOf(id), (context) => step(context, id), id);
      return new Schedule(clock, { concurrency, run });
    };
    const share = () => this.#shareOf(options.polling.concurrency);
    this.#deployments = scheduleOf('poll', share, syncDeployment);
    this.#intents = scheduleOf('intent', share, (context, id) => this.#send(context, id));
    this.#volumes = scheduleOf('volume', () => this.#shareOf(VOLUMES_AT_ONCE), syncVolume);
    this.#proofs = scheduleOf(
      'ssh proof',
      () => PROOFS_AT_ONCE,
      (context, id) => this.#prove(context, id),
    );
    this.#chores = new Schedule(clock, {
      concurrency: () => Number.POSITIVE_INFINITY,
      run: (chore) => this.#do(chore as Chore),
    });
    this.#leases = new RangeLeases(deps, {
      name: `provider:${provider.id}`,
      holder,
      begin: (won) => this.#begin(won),
      end: (ranges) => this.#end(ranges),
      drain: (range) => this.#drain(range),
      notify: (tx) => tx.signals.wake(provider.id, RANGES_CHANGED),
    });
  }

  get problems(): readonly string[] {
    return this.#health.problems.map((problem) => `calls about deployments fail: ${problem}`);
  }

  get failingMs(): ReadonlyMap<ProviderWideProblem, number> {
    return this.#health.failingMs;
  }

  /** The number of the provider's ranges that this process syncs. */
  get ranges(): number {
    return this.#contexts.size;
  }

  start(): void {
    this.#leases.start();
  }

  /** Handles a signal; without one, reads the rows that have changed. */
  wake(signal?: Signal): void {
    if (signal === undefined) this.#chores.put('news', 0);
    else if (signal.subjectId === RANGES_CHANGED) this.#leases.balance();
    else if (!this.#leases.isHeld(rangeOf(signal.subjectId))) return;
    else if (signal.kind === 'ask') this.#intents.put(signal.subjectId, 0);
    else if (signal.subjectId.startsWith('vol-')) this.#volumes.put(signal.subjectId, 0);
    else this.#syncRow(signal.subjectId);
  }

  /** Reads the provider's catalog now, if this process is responsible for it. */
  async refreshCatalog(): Promise<void> {
    await this.#leases.claimed;
    await this.#do('catalog');
  }

  /** Delays the next polls of these deployments. */
  postpone(deploymentIds: Iterable<string>, byMs: number): void {
    this.#deployments.postpone(deploymentIds, byMs);
  }

  /** Waits for running steps, then releases the leases. */
  async stop(): Promise<void> {
    this.#stopping.resolve();
    await this.#leases.stop();
    await Promise.all([...this.#schedules, this.#chores].map((schedule) => schedule.stop()));
    await Promise.all([...this.#contexts.values()].map((context) => this.#flushLast(context)));
    await this.#leases.release();
  }

  get #schedules(): Schedule[] {
    return [this.#deployments, this.#intents, this.#volumes, this.#proofs];
  }

  /** The share of a limit for this process's ranges, at least 1. Many processes may together exceed a small limit. */
  #shareOf(limit: number): number {
    return Math.max(1, Math.floor((limit * this.#contexts.size) / RANGES));
  }

  #begin(won: readonly { range: number; lease: LeaseRecord }[]): void {
    const { options, random } = this.#deps;
    for (const { range, lease } of won) this.#contexts.set(range, this.#contextOf(range, lease));
    for (const chore of ['reread', 'flush'] as const) this.#chores.put(chore, 0);
    this.#chores.put('news', NEWS_MS);
    if (!won.some(({ range }) => range === CHORES_RANGE)) return;
    this.#chores.put('catalog', 0);
    this.#chores.put('usage', Math.round(USAGE_MS * random.next()));
    this.#chores.put('sweep', Math.round(options.polling.sweepMs * random.next()));
  }

  #contextOf(range: number, lease: LeaseRecord): SyncContext {
    const store = fencedStore(this.#deps.store, lease);
    const answers = new LastAnswers(this.#deps);
    return {
      ...this.#deps,
      store,
      unfenced: this.#deps.store,
      provider: this.#provider,
      health: this.#health,
      observations: new Observations(store, answers),
      answers,
      isLeaseHeld: () => this.#leases.isHeld(range),
      call: { timeoutMs: this.#deps.options.polling.callTimeoutMs },
      cleanups: new Map(),
      unproved: new Map(),
      beginProof: (id) => this.#proofs.put(id, 0),
      sshAlarm: this.#sshAlarm,
    };
  }

  #end(ranges: readonly number[]): void {
    this.#deps.log.warn(
      { provider: this.#provider.id, ranges },
      'lost the leases on ranges of the provider: another process may now sync their deployments and volumes',
    );
    for (const range of ranges) void this.#leave(range);
  }

  /** Settles once no step of the range is running. */
  async #leave(range: number): Promise<void> {
    this.#contexts.delete(range);
    const isInRange = (id: string) => rangeOf(id) === range;
    if (this.#contexts.size > 0) this.#health.forgetAll(isInRange);
    else this.#health.clear();
    await Promise.all(this.#schedules.map((schedule) => schedule.drop(isInRange)));
  }

  async #drain(range: number): Promise<void> {
    const context = this.#contexts.get(range);
    await this.#leave(range);
    if (range === CHORES_RANGE)
      await this.#chores.drop((chore) => ['catalog', 'sweep', 'usage'].includes(chore));
    if (context !== undefined) await this.#flushLast(context);
  }

  async #flushLast({ observations }: SyncContext): Promise<void> {
    await observations
      .flush()
      .catch((error) => this.#deps.log.warn({ err: error }, 'could not write the last observations'));
  }

  /** Sends the intent, then schedules a poll: at once if the provider did not answer. */
  async #send(context: SyncContext, id: string): Promise<null> {
    this.#deployments.put(id, (await sendIntent(context, id)) ? AWAITED_MS : 0);
    return null;
  }

  /** Makes one attempt. The next poll triggers a further one. */
  async #prove(context: SyncContext, id: string): Promise<null> {
    if (await proveSsh(context, id)) this.#deployments.put(id, 0);
    return null;
  }

  async #do(chore: Chore): Promise<number | null> {
    switch (chore) {
      case 'catalog':
        return this.#guard(chore, CHORES_RANGE, (context) => this.#readCatalog(context));
      case 'sweep':
        return this.#guard(chore, CHORES_RANGE, (context) => this.#sweep.run(context));
      case 'usage':
        return this.#guard(chore, CHORES_RANGE, readVolumeUsage);
      case 'reread':
      case 'news':
        return this.#read(chore);
      case 'flush':
        await Promise.all(
          [...this.#contexts.keys()].map((range) =>
            this.#guard(chore, range, async ({ observations }) => observations.flush().then(() => null)),
          ),
        );
        return this.#contexts.size === 0 ? null : FLUSH_MS;
    }
  }

  /** Concurrent callers share one read. */
  async #readCatalog({
    store,
    provider,
    call,
    refreshCatalog,
    options,
    random,
  }: SyncContext): Promise<number> {
    this.#catalogReading ??= refreshCatalog(provider.id, store, call).finally(() => {
      this.#catalogReading = undefined;
    });
    // A provider that hangs must not delay the stop. A later result is not written, because the lease is released.
    await Promise.race([this.#catalogReading, this.#stopping.promise]);
    return Math.round(options.polling.catalogMs * (1 - CATALOG_JITTER + 2 * CATALOG_JITTER * random.next()));
  }

  /** Reads the rows of all ranges at once, and skips those of ranges that other processes hold. */
  async #read(chore: 'reread' | 'news'): Promise<number | null> {
    const [anyRange] = this.#contexts.keys();
    if (anyRange === undefined) return null;
    return this.#guard(chore, anyRange, async ({ store: { read }, provider }) => {
      const { deployments, volumes } = read;
      if (chore === 'reread') {
        this.#take(await deployments.toSync(provider.id));
        this.#takeVolumes(await volumes.toSync(provider.id));
        return REREAD_MS;
      }
      this.#take(await deployments.newToSync(provider.id));
      this.#takeChangingVolumes(await volumes.newToSync(provider.id));
      return NEWS_MS;
    });
  }

  #take(deployments: readonly DeploymentToSync[]): void {
    const { options, random } = this.#deps;
    const [firstMs] = options.polling.intervalMs;
    for (const { id, stoppedAt, launchState, isAsked } of deployments) {
      const context = this.#contexts.get(rangeOf(id));
      if (context === undefined) continue;
      if (isAsked) this.#intents.put(id, 0);
      if (stoppedAt !== null && !context.cleanups.has(id)) this.#syncRow(id);
      // The first polls of deployments taken over from an earlier process are spread.
      else if (!this.#deployments.has(id))
        this.#deployments.put(id, launchState === 'made' ? Math.round(firstMs * random.next()) : 0);
    }
  }

  /** Syncs the deployment from its row, which may have changed. */
  #syncRow(id: string): void {
    this.#contexts.get(rangeOf(id))?.answers.rowChanged(id);
    this.#deployments.put(id, 0);
  }

  /** Spreads the first syncs. Changing volumes are due at once: {@link #takeChangingVolumes}. */
  #takeVolumes(ids: readonly string[]): void {
    for (const id of ids)
      if (this.#contexts.has(rangeOf(id)) && !this.#volumes.has(id))
        this.#volumes.put(id, Math.round(SETTLED_MS * this.#deps.random.next()));
  }

  /** Makes changing volumes due within seconds, even if the process that was notified has crashed. */
  #takeChangingVolumes(ids: readonly string[]): void {
    for (const id of ids)
      if (this.#contexts.has(rangeOf(id))) this.#volumes.put(id, this.#volumes.has(id) ? CHANGING_MS : 0);
  }

  /** Runs a step. A step that throws is logged once and retried, without affecting other steps or ranges. */
  async #guard(
    name: string,
    range: number,
    step: (context: SyncContext) => Promise<number | null>,
    subjectId?: string,
  ): Promise<number | null> {
    const context = this.#contexts.get(range);
    if (context === undefined) return null;
    // The lease has expired but may be renewed. If it is not, the end of the lease drops the due steps.
    if (!this.#leases.isHeld(range)) return AFTER_FAILURE_MS;
    try {
      const afterMs = await step(context);
      this.#failures.succeeded(name, subjectId);
      return afterMs;
    } catch (error) {
      if (!(error instanceof LeaseLost)) await this.#failures.failed(error, name, subjectId);
      // The process that now holds the range does the step.
      else if (this.#contexts.get(range) === context) this.#leases.lost(range);
      return error instanceof LeaseLost ? null : AFTER_FAILURE_MS;
    }
  }
}
