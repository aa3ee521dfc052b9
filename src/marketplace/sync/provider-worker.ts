import { LeaseLost, type LeaseRecord } from '../../work/lease.ts';
import { fencedStore } from '../model/fenced-store.ts';
import type { DeploymentToSync, Signal } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import { Sweep } from './cleanup.ts';
import { Confirmations, type SyncContext, type SyncDeps } from './context.ts';
import { sendIntent } from './intents.ts';
import { LastAnswers } from './last-answers.ts';
import { proveSsh } from './prove-ssh.ts';
import { ProviderHealth, type ProviderWideProblem } from './provider-health.ts';
import { Schedule } from './schedule.ts';
import { StepFailures } from './step-failures.ts';
import { AWAITED_MS, syncDeployment } from './sync-deployment.ts';
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

type Chore = 'catalog' | 'reread' | 'news' | 'flush' | 'sweep' | 'usage';

/** The pause between two reads of the catalog varies by up to a quarter. */
const CATALOG_JITTER = 0.25;

/** The lease on calls to the worker's provider. */
interface OwnLease {
  isHeld(): boolean;
  /** Another process has the lease. */
  lost(): void;
}

/** Syncs a provider's deployments and volumes, reads its catalog and deletes orphans, while this process holds its lease. */
export class ProviderWorker {
  readonly #deps: SyncDeps;
  readonly #provider: Provider;
  readonly #health: ProviderHealth;
  readonly #failures: StepFailures;
  readonly #lease: OwnLease;
  /** Bound to the lease: its store rejects writes once another process holds it. Null: this process does not hold it. */
  #context: SyncContext | null = null;
  readonly #deployments: Schedule;
  /** A separate schedule, so that requests do not wait for polls that hang. */
  readonly #intents: Schedule;
  readonly #volumes: Schedule;
  readonly #proofs: Schedule;
  readonly #chores: Schedule;
  readonly #sweep = new Sweep();
  readonly #stopping = Promise.withResolvers<void>();
  #catalogReading: Promise<void> | undefined;

  constructor(deps: SyncDeps, provider: Provider, lease: OwnLease) {
    const { clock, options } = deps;
    this.#deps = deps;
    this.#provider = provider;
    this.#lease = lease;
    this.#health = new ProviderHealth(deps, provider.id);
    this.#failures = new StepFailures(deps, provider.id);
    const scheduleOf = (
      name: string,
      concurrency: number,
      step: (context: SyncContext, id: string) => Promise<number | null>,
    ) => {
      const run = (id: string) => this.#guard(name, (context) => step(context, id), id);
      return new Schedule(clock, { concurrency, run });
    };
    const { concurrency } = options.polling;
    this.#deployments = scheduleOf('poll', concurrency, syncDeployment);
    this.#intents = scheduleOf('intent', concurrency, (context, id) => this.#send(context, id));
    this.#volumes = scheduleOf('volume', VOLUMES_AT_ONCE, syncVolume);
    this.#proofs = scheduleOf('ssh proof', PROOFS_AT_ONCE, (context, id) => this.#prove(context, id));
    this.#chores = new Schedule(clock, {
      concurrency: Number.POSITIVE_INFINITY,
      run: (chore) => this.#guard(chore, (context) => this.#do(chore as Chore, context)),
    });
  }

  get problems(): readonly string[] {
    return this.#health.problems.map((problem) => `calls about deployments fail: ${problem}`);
  }

  get failingMs(): ReadonlyMap<ProviderWideProblem, number> {
    return this.#health.failingMs;
  }

  /** Whether this process syncs the provider. */
  get isActive(): boolean {
    return this.#context !== null;
  }

  /** Handles a signal; without one, reads the rows that have changed. */
  wake(signal?: Signal): void {
    if (signal === undefined) this.#chores.put('news', 0);
    else if (!this.#lease.isHeld()) return;
    else if (signal.kind === 'ask') this.#intents.put(signal.subjectId, 0);
    else if (signal.subjectId.startsWith('vol-')) this.#volumes.put(signal.subjectId, 0);
    else this.#syncRow(signal.subjectId);
  }

  /** Reads the provider's catalog now, if this process holds the lease. */
  async refreshCatalog(): Promise<void> {
    await this.#guard('catalog', (context) => this.#readCatalog(context));
  }

  /** Delays the next polls of these deployments. */
  postpone(deploymentIds: Iterable<string>, byMs: number): void {
    this.#deployments.postpone(deploymentIds, byMs);
  }

  /** Waits for running steps. */
  async stop(): Promise<void> {
    this.#stopping.resolve();
    await Promise.all(this.#schedules.map((schedule) => schedule.stop()));
    if (this.#context !== null) await this.#flushLast(this.#context);
  }

  get #schedules(): Schedule[] {
    return [this.#deployments, this.#intents, this.#volumes, this.#proofs, this.#chores];
  }

  /** The lease was won. */
  begin(lease: LeaseRecord): void {
    const { options, random } = this.#deps;
    this.#context = this.#contextOf(lease);
    for (const chore of ['catalog', 'reread', 'flush'] as const) this.#chores.put(chore, 0);
    this.#chores.put('news', NEWS_MS);
    this.#chores.put('usage', Math.round(USAGE_MS * random.next()));
    this.#chores.put('sweep', Math.round(options.polling.sweepMs * random.next()));
  }

  #contextOf(lease: LeaseRecord): SyncContext {
    const store = fencedStore(this.#deps.store, lease);
    const answers = new LastAnswers(this.#deps);
    return {
      ...this.#deps,
      store,
      unfenced: this.#deps.store,
      provider: this.#provider,
      health: this.#health,
      confirmations: new Confirmations(store, answers),
      answers,
      isLeaseHeld: () => this.#lease.isHeld(),
      call: { timeoutMs: this.#deps.options.polling.callTimeoutMs },
      cleanups: new Map(),
      awaitingProof: new Map(),
      beginProof: (id) => this.#proofs.put(id, 0),
    };
  }

  /** The lease was lost. */
  end(): void {
    this.#deps.log.warn(
      { provider: this.#provider.id },
      'lost the lease on the provider: another process may now sync its deployments and volumes',
    );
    void this.#leave();
  }

  /** Settles once no step is running. */
  async #leave(): Promise<void> {
    this.#context = null;
    this.#health.clear();
    await Promise.all(this.#schedules.map((schedule) => schedule.drop()));
  }

  /** Hands the lease over: settles once no step is running. */
  async drain(): Promise<void> {
    const context = this.#context;
    await this.#leave();
    if (context !== null) await this.#flushLast(context);
  }

  async #flushLast({ confirmations }: SyncContext): Promise<void> {
    await confirmations
      .flush()
      .catch((error) => this.#deps.log.warn({ err: error }, 'could not write the last confirmations'));
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

  async #do(chore: Chore, context: SyncContext): Promise<number> {
    const { store, provider, confirmations } = context;
    const { deployments, volumes } = store.read;
    switch (chore) {
      case 'catalog':
        return this.#readCatalog(context);
      case 'sweep':
        return this.#sweep.run(context);
      case 'usage':
        return readVolumeUsage(context);
      case 'reread':
        this.#take(context, await deployments.toSync(provider.id));
        this.#takeVolumes(await volumes.toSync(provider.id));
        return REREAD_MS;
      case 'news':
        this.#take(context, await deployments.newToSync(provider.id));
        this.#takeChangingVolumes(await volumes.newToSync(provider.id));
        return NEWS_MS;
      case 'flush':
        await confirmations.flush();
        return FLUSH_MS;
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

  #take(context: SyncContext, deployments: readonly DeploymentToSync[]): void {
    const { options, random } = this.#deps;
    const [firstMs] = options.polling.intervalMs;
    for (const { id, stoppedAt, launchState, isAsked } of deployments) {
      if (isAsked) this.#intents.put(id, 0);
      if (stoppedAt !== null && !context.cleanups.has(id)) this.#syncRow(id);
      // The first polls of deployments taken over from an earlier process are spread.
      else if (!this.#deployments.has(id))
        this.#deployments.put(id, launchState === 'made' ? Math.round(firstMs * random.next()) : 0);
    }
  }

  /** Syncs the deployment from its row, which may have changed. */
  #syncRow(id: string): void {
    this.#context?.answers.rowChanged(id);
    this.#deployments.put(id, 0);
  }

  /** Spreads the first syncs. Changing volumes are due at once: {@link #takeChangingVolumes}. */
  #takeVolumes(ids: readonly string[]): void {
    for (const id of ids)
      if (!this.#volumes.has(id)) this.#volumes.put(id, Math.round(SETTLED_MS * this.#deps.random.next()));
  }

  /** Makes changing volumes due within seconds, even if the process that was notified has crashed. */
  #takeChangingVolumes(ids: readonly string[]): void {
    for (const id of ids) this.#volumes.put(id, this.#volumes.has(id) ? CHANGING_MS : 0);
  }

  /** Runs a step. A step that throws is logged once and retried, without affecting other steps. */
  async #guard(
    name: string,
    step: (context: SyncContext) => Promise<number | null>,
    subjectId?: string,
  ): Promise<number | null> {
    const context = this.#context;
    if (context === null) return null;
    // The lease has expired but may be renewed. If it is not, the end of the lease drops the due steps.
    if (!this.#lease.isHeld()) return AFTER_FAILURE_MS;
    try {
      const afterMs = await step(context);
      this.#failures.succeeded(name, subjectId);
      return this.#context === context ? afterMs : null;
    } catch (error) {
      if (!(error instanceof LeaseLost)) await this.#failures.failed(error, name, subjectId);
      // The process that now holds the lease does the step.
      else if (this.#context === context) this.#lease.lost();
      return error instanceof LeaseLost ? null : AFTER_FAILURE_MS;
    }
  }
}
