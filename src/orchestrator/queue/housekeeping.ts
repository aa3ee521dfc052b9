import type { Clock, Timer } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { PruneRequest } from '../model/attempt.ts';
import { markOf } from '../model/marks.ts';
import type { Store } from '../model/store.ts';

const INTERVAL_MS = 10_000;
const PRUNE_BATCH = 200;
const MAX_PRUNE_BATCHES = 20;
/** How long an Idempotency-Key is kept, in milliseconds. */
const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000;

interface Deps {
  store: Store;
  clock: Clock;
  log: Log;
  authenticators: readonly { recordUses(round: { isLast: boolean }): Promise<void> }[];
  alarms: Pick<Alarms, 'sync'>;
  /** How long a tombstone is kept, in milliseconds. */
  tombstonesKeptMs: number;
  /** How long the history of instances is kept, in milliseconds. */
  historyKeptMs: number;
  /** How long the audit log and ended alarms are kept, in milliseconds. */
  auditKeptMs: number;
  /**
   * The time before which a row must have ended to be pruned now, for each platform where one may be pruned: see
   * docs/decisions/0022-retention.md.
   */
  prunable: () => ReadonlyMap<string, number>;
  /** Additional work in each round. */
  also?: () => Promise<void>;
}

/** Prunes in small transactions, with enough of them in a round to keep up with new rows. */
async function pruneOldest(
  store: Pick<Store, 'transact'>,
  table: 'history' | 'audit' | 'alarms',
  before: number,
): Promise<void> {
  for (let batch = 0; batch < MAX_PRUNE_BATCHES; batch++)
    if ((await store.transact((tx) => tx[table].pruneOldest(before, PRUNE_BATCH))) < PRUNE_BATCH) return;
}

/** Deletes expired rows, writes the last use of each key, and stores and reads the alarms. */
export class Housekeeping {
  readonly #deps: Deps;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = this.#deps.clock.setTimer(INTERVAL_MS, () => {
      this.#running = this.run();
      void this.#running.then(() => this.start());
    });
  }

  /** Stops the rounds and writes the pending uses of the authenticators. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    const { authenticators, log } = this.#deps;
    try {
      for (const authenticator of authenticators) await authenticator.recordUses({ isLast: true });
    } catch (error) {
      log.error({ err: error }, 'the last uses and refusals of keys could not be written and are lost');
    }
  }

  /** Runs one round. Never rejects. */
  async run(): Promise<void> {
    const { store, clock, log, authenticators, alarms, prunable, also } = this.#deps;
    const { tombstonesKeptMs, historyKeptMs, auditKeptMs } = this.#deps;
    await alarms.sync();
    try {
      await also?.();
      for (const authenticator of authenticators) await authenticator.recordUses({ isLast: false });
      const now = clock.now();
      await store.transact(async (tx) => {
        await tx.credentials.deleteTokensExpiredBefore(now);
        await tx.credentials.deleteClosedAccounts();
        await tx.idempotency.deleteCreatedBefore(now - IDEMPOTENCY_MS);
        await tx.cordons.removeEndedBefore(now);
      });
      await pruneOldest(store, 'history', now - historyKeptMs);
      await pruneOldest(store, 'audit', now - auditKeptMs);
      await pruneOldest(store, 'alarms', now - auditKeptMs);
      for (const [platform, searchedUntil] of prunable())
        await pruneTombstones(store, platform, Math.min(now - tombstonesKeptMs, searchedUntil));
    } catch (error) {
      log.error({ err: error }, 'housekeeping failed; retrying in a few seconds');
    }
  }
}

/** Rows per transaction, which blocks others for some milliseconds. */
const BATCH = 100;

/**
 * Deletes the oldest tombstones of a platform that ended before `endedBefore`, in milliseconds since the epoch. A small
 * transaction for each kind also writes the mark that `whyNotAdoptable` reads.
 */
export async function pruneTombstones(store: Store, platform: string, endedBefore: number): Promise<void> {
  const request: PruneRequest = { platform, endedBefore, limit: BATCH };
  for (const kind of ['instance', 'volume'] as const)
    await store.transact(async ({ instances, volumes, marks }) => {
      const { newestCreatedAt } = await (kind === 'instance' ? instances : volumes).prune(request);
      if (newestCreatedAt === null) return;
      const name = markOf(platform, `${kind}s_pruned_until`);
      const known = await marks.get(name);
      if (known === null || known < newestCreatedAt) await marks.put(name, newestCreatedAt);
    });
  await store.transact((tx) => tx.attempts.prune(request));
}

/**
 * Refuses a clock that is behind the creation time of a pruned row: a resource created then could not be restored if
 * its row were lost.
 *
 * @throws {Fatal}
 */
export async function assertClockIsPastPruned(
  { read: { marks } }: Pick<Store, 'read'>,
  platforms: Iterable<string>,
  now: number,
): Promise<void> {
  const names = [...platforms].flatMap((platform) => [
    markOf(platform, 'instances_pruned_until'),
    markOf(platform, 'volumes_pruned_until'),
  ]);
  const pruned = await Promise.all(names.map((name) => marks.get(name)));
  const until = Math.max(...pruned.map((at) => at ?? Number.NEGATIVE_INFINITY));
  if (now > until) return;
  throw new Fatal(
    `The clock shows ${new Date(now).toISOString()}, but this database has already pruned instances or volumes created up to ${new Date(until).toISOString()}: correct the clock of this machine and start again.`,
  );
}
