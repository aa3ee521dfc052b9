import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Store } from '../model/store.ts';
import { pruneTombstones } from './prune-tombstones.ts';

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
  /** How long the audit log is kept, in milliseconds. */
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
  table: 'history' | 'audit',
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
      for (const [platform, searchedUntil] of prunable())
        await pruneTombstones(store, platform, Math.min(now - tombstonesKeptMs, searchedUntil));
    } catch (error) {
      log.error({ err: error }, 'housekeeping failed; retrying in a few seconds');
    }
  }
}
