import { LeaseLost, type LeaseRecord } from '../../work/lease.ts';
import { LeaseHolder } from '../../work/lease-holder.ts';
import { logNames } from '../model/deployment-record.ts';
import { fencedStore } from '../model/fenced-store.ts';
import { type DeploymentToSync, type Signal, StoreUnavailable } from '../model/store.ts';
import { announcesChanges } from '../providers/capabilities.ts';
import type { Provider } from '../providers/provider.ts';
import { ChangesFeed } from './changes-feed.ts';
import { Observations, type SyncContext, type SyncDeps } from './context.ts';
import { LastAnswers } from './last-answers.ts';
import { proveSsh } from './prove-ssh.ts';
import { ProviderHealth, type ProviderWideProblem } from './provider-health.ts';
import { Schedule } from './schedule.ts';
import { sendIntent } from './send-intent.ts';
import { SshAlarm } from './ssh-alarm.ts';
import { Sweep } from './sweep.ts';
import { syncDeployment } from './sync-deployment.ts';
import { SETTLED_MS, syncVolume } from './volumes/sync-volume.ts';

/** How often what other processes have changed is read. */
const NEWS_MS = 5_000;
/** Between two readings of the catalog: the interval, more or less a quarter of it. */
const CATALOG_JITTER = 0.25;
/** How often all deployments are read again, in case one was lost from the schedule. */
const REREAD_MS = 60_000;
/** How often confirmed times are written. A crash loses this much, which is billed later or not at all. */
const FLUSH_MS = 30_000;
const AFTER_FAILURE_MS = 5_000;
const VOLUMES_AT_ONCE = 8;
/** SSH connections to new machines at the same time: beside the calls, since a host that hangs holds its slot for long. */
const PROOFS_AT_ONCE = 32;
/** What all steps have in common that break off while the database does not answer. */
const STORE = 'store';

type Chore = 'catalog' | 'reread' | 'news' | 'flush' | 'sweep';

/**
 * Syncs the deployments, the volumes and the catalog of one provider while this process holds its lease. Independent of all other
 * providers.
 */
export class ProviderWorker {
  readonly #deps: SyncDeps;
  readonly #provider: Provider;
  readonly #health: ProviderHealth;
  readonly #sshAlarm: SshAlarm;
  /** Bound to the current lease: its store rejects writes once another process holds it. */
  #context: SyncContext | undefined;
  readonly #lease: LeaseHolder;
  readonly #deployments: Schedule;
  /** Beside the polls, so that a request does not wait for polls that hang. */
  readonly #intents: Schedule;
  readonly #volumes: Schedule;
  readonly #proofs: Schedule;
  readonly #chores: Schedule;
  readonly #sweep = new Sweep();
  /** The reading of the catalog that is under way. */
  #catalog: Promise<void> | undefined;
  readonly #stopped = Promise.withResolvers<void>();
  readonly #failing = new Set<string>();

  constructor(deps: SyncDeps, provider: Provider, holder: string) {
    const { clock, options } = deps;
    this.#deps = deps;
    this.#provider = provider;
    this.#health = new ProviderHealth(deps, provider.id);
    this.#sshAlarm = new SshAlarm(deps, provider.id);
    this.#deployments = new Schedule(clock, {
      concurrency: options.polling.concurrency,
      run: (id) => this.#guard('poll', (context) => syncDeployment(context, id), id),
    });
    this.#intents = new Schedule(clock, {
      concurrency: options.polling.concurrency,
      run: (id) => this.#guard('intent', (context) => this.#send(context, id), id),
    });
    this.#volumes = new Schedule(clock, {
      concurrency: VOLUMES_AT_ONCE,
      run: (id) => this.#guard('volume', (context) => syncVolume(context, id), id),
    });
    this.#proofs = new Schedule(clock, {
      concurrency: PROOFS_AT_ONCE,
      run: (id) => this.#guard('ssh proof', (context) => this.#prove(context, id), id),
    });
    this.#chores = new Schedule(clock, {
      concurrency: Number.POSITIVE_INFINITY,
      run: (chore) => this.#guard(chore, (context) => this.#do(context, chore as Chore)),
    });
    this.#lease = new LeaseHolder(deps, {
      name: `provider:${provider.id}`,
      holder,
      changed: (lease) => (lease === null ? this.#end() : this.#begin(lease)),
    });
  }

  get problems(): readonly string[] {
    return this.#health.problems.map((problem) => `calls about deployments fail: ${problem}`);
  }

  /** For how long calls have failed, in milliseconds, by what is wrong with them. */
  get failingMs(): ReadonlyMap<ProviderWideProblem, number> {
    return this.#health.failingMs;
  }

  start(): void {
    this.#lease.start();
  }

  /** There is something to do; without a signal: what is new is read. */
  wake(signal?: Signal): void {
    if (!this.#lease.isHeld) return;
    if (signal === undefined) this.#chores.put('news', 0);
    else if (signal.kind === 'ask') this.#intents.put(signal.subjectId, 0);
    else if (signal.subjectId.startsWith('vol-')) this.#volumes.put(signal.subjectId, 0);
    else this.#syncRow(signal.subjectId);
  }

  /** Reads the provider's catalog now, where this process holds its lease. */
  async refreshCatalog(): Promise<void> {
    await this.#lease.claimed;
    await this.#guard('catalog', (context) => this.#do(context, 'catalog'));
  }

  /** The next polls of these deployments are so much later. */
  postpone(deploymentIds: Iterable<string>, byMs: number): void {
    this.#deployments.postpone(deploymentIds, byMs);
  }

  /** Waits for running steps, then releases the lease. */
  async stop(): Promise<void> {
    this.#stopped.resolve();
    await this.#lease.stop();
    await this.#context?.changes.stop();
    await Promise.all(this.#schedules.map((schedule) => schedule.stop()));
    await this.#context?.observations
      .flush()
      .catch((error) => this.#deps.log.warn({ err: error }, 'the last observations could not be written'));
    await this.#lease.release();
  }

  get #schedules(): Schedule[] {
    return [this.#deployments, this.#intents, this.#volumes, this.#proofs, this.#chores];
  }

  #begin(lease: LeaseRecord): void {
    const { options, random } = this.#deps;
    const store = fencedStore(this.#deps.store, lease);
    const answers = new LastAnswers(this.#deps);
    this.#context = {
      ...this.#deps,
      store,
      provider: this.#provider,
      health: this.#health,
      observations: new Observations(store, answers),
      answers,
      changes: new ChangesFeed({
        ...this.#deps,
        provider: this.#provider,
        health: this.#health,
        maxAgeMs: options.polling.intervalMs[1],
        changed: (instanceId) => this.#pollNow(answers.deploymentOf(instanceId)),
      }),
      isLeaseHeld: () => this.#lease.isHeld,
      call: { timeoutMs: options.polling.callTimeoutMs },
      cleanups: new Map(),
      unproved: new Map(),
      beginProof: (id) => this.#proofs.put(id, 0),
      sshAlarm: this.#sshAlarm,
    };
    for (const chore of ['catalog', 'reread', 'flush'] as const) this.#chores.put(chore, 0);
    this.#chores.put('news', NEWS_MS);
    this.#chores.put('sweep', Math.round(options.polling.sweepMs * random.next()));
  }

  #end(): void {
    void this.#context?.changes.stop();
    this.#context = undefined;
    this.#health.clear();
    this.#deps.log.warn(
      { provider: this.#provider.id },
      'the lease of the provider is lost: another process may work on it now',
    );
    for (const schedule of this.#schedules) schedule.clear();
  }

  /** Sends what is asked for, and has the deployment synced at once. */
  async #send(context: SyncContext, id: string): Promise<null> {
    await sendIntent(context, id);
    this.#deployments.put(id, 0);
    return null;
  }

  /** A poll asks for the next try. */
  async #prove(context: SyncContext, id: string): Promise<null> {
    if (await proveSsh(context, id)) this.#deployments.put(id, 0);
    return null;
  }

  async #do(context: SyncContext, chore: Chore): Promise<number> {
    switch (chore) {
      case 'catalog':
        // A provider that hangs delays no end: what is read after it is not written, since the lease is released.
        await Promise.race([this.#readCatalog(context), this.#stopped.promise]);
        return this.#nextCatalogMs();
      case 'reread':
        this.#take(context, await context.store.read.deployments.toSync(context.provider.id));
        this.#takeVolumes(await context.store.read.volumes.toSync(context.provider.id), SETTLED_MS);
        return REREAD_MS;
      case 'news':
        if (announcesChanges(context.provider.catalog)) context.changes.start();
        this.#take(context, await context.store.read.deployments.newToSync(context.provider.id));
        this.#takeVolumes(await context.store.read.volumes.newToSync(context.provider.id), 0);
        return NEWS_MS;
      case 'flush':
        await context.observations.flush();
        return FLUSH_MS;
      case 'sweep':
        await this.#sweep.run(context);
        return context.options.polling.sweepMs;
    }
  }

  /** Those that ask at the same time share one reading. */
  #readCatalog({ store, provider, call, refreshCatalog }: SyncContext): Promise<void> {
    this.#catalog ??= refreshCatalog(provider.id, store, call).finally(() => {
      this.#catalog = undefined;
    });
    return this.#catalog;
  }

  #nextCatalogMs(): number {
    const { options, random } = this.#deps;
    return Math.round(options.polling.catalogMs * (1 - CATALOG_JITTER + 2 * CATALOG_JITTER * random.next()));
  }

  #take({ cleanups }: SyncContext, deployments: readonly DeploymentToSync[]): void {
    for (const { id, stoppedAt, launchState, isAsked } of deployments) {
      if (isAsked) this.#intents.put(id, 0);
      if (stoppedAt !== null && !cleanups.has(id)) this.#syncRow(id);
      else if (!this.#deployments.has(id))
        this.#deployments.put(id, launchState === 'made' ? this.#firstPollMs() : 0);
    }
  }

  #pollNow(id: string | undefined): void {
    if (id !== undefined) this.#deployments.put(id, 0);
  }

  /** The row of the deployment may have changed. */
  #syncRow(id: string): void {
    this.#context?.answers.rowChanged(id);
    this.#deployments.put(id, 0);
  }

  /** Those that are not known are due within this time. */
  #takeVolumes(ids: readonly string[], withinMs: number): void {
    for (const id of ids)
      if (!this.#volumes.has(id)) this.#volumes.put(id, Math.round(withinMs * this.#deps.random.next()));
  }

  /** Spreads the first polls of deployments that an earlier process left. */
  #firstPollMs(): number {
    const { options, random } = this.#deps;
    return Math.round(options.polling.intervalMs[0] * random.next());
  }

  /** A step that throws is a bug or a store failure: it is logged once and retried. */
  async #guard(
    name: string,
    step: (context: SyncContext) => Promise<number | null>,
    deploymentId?: string,
  ): Promise<number | null> {
    const key = `${name} ${deploymentId ?? ''}`;
    const context = this.#context;
    if (context === undefined) return null;
    // It has run out, and a renewal may be under way: where that comes too late, the end of the lease drops what is due.
    if (!this.#lease.isHeld) return AFTER_FAILURE_MS;
    try {
      const afterMs = await step(context);
      this.#failing.delete(key);
      this.#failing.delete(STORE);
      return afterMs;
    } catch (error) {
      // Whoever has the lease now does it.
      if (error instanceof LeaseLost) {
        if (this.#context === context) this.#lease.lost();
        return null;
      }
      const cause = error instanceof StoreUnavailable ? STORE : key;
      if (!this.#failing.has(cause)) {
        this.#failing.add(cause);
        const fields = {
          err: error,
          ...(await this.#namesOf(deploymentId)),
          provider: this.#provider.id,
          step: name,
        };
        this.#deps.log.error(fields, 'a step failed with an error; it will be retried');
      }
      return AFTER_FAILURE_MS;
    }
  }

  /** Its id alone while the store does not answer. */
  async #namesOf(deploymentId: string | undefined): Promise<object> {
    if (deploymentId === undefined) return {};
    const record = await this.#deps.store.read.deployments.byId(deploymentId).catch(() => null);
    return record === null ? { deployment: deploymentId } : logNames(record);
  }
}
