import type { FigureRecorder } from '../../operator-kit/figures/recorder.ts';
import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';

const EVERY_MS = 60_000;
/** How many rows of the audit log one transaction deletes. */
const PRUNED_AT_ONCE = 200;

interface Deps {
  /** Authenticators with pending times of last use. */
  authenticators: readonly { recordUses(round: { isLast: boolean }): Promise<void> }[];
  /** Absent: there are no operators, and no audit log. */
  audit?: { store: Pick<Store, 'transact'>; keptMs: number } | undefined;
  /** Begins what is due, and does not wait for it. */
  also?: (() => void) | undefined;
  /** Absent: there are no operators. */
  figures?: Pick<FigureRecorder, 'run'> | undefined;
  clock: Clock;
  log: Log;
}

/**
 * Once a minute, writes the times of last use of keys and the figures over time, and deletes old rows of the audit log
 * and old alarms.
 */
export class Housekeeping {
  readonly #deps: Deps;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.setTimer(EVERY_MS, () => {
      this.#running = this.#run({ isLast: false });
      this.start();
    });
  }

  /** Writes the remaining times of last use. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#running;
    await this.#run({ isLast: true });
  }

  async #run(round: { isLast: boolean }): Promise<void> {
    const { authenticators, audit, figures, clock, log, also } = this.#deps;
    if (!round.isLast) also?.();
    if (!round.isLast) await figures?.run();
    try {
      for (const authenticator of authenticators) await authenticator.recordUses(round);
      if (audit === undefined) return;
      const before = clock.now() - audit.keptMs;
      await audit.store.transact((tx) => tx.audit.pruneOldest(before, PRUNED_AT_ONCE));
      await audit.store.transact((tx) => tx.alarms.pruneOldest(before, PRUNED_AT_ONCE));
    } catch (err) {
      log.warn({ err }, 'could not write the last-use times of API keys; it will be retried');
    }
  }
}
