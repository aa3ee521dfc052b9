import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { LossCapOptions } from './options.ts';

interface Deps {
  clock: Clock;
  log: Log;
  options: { maxLosses: LossCapOptions; lastRetryMs: number };
}

/** The `lastError` of the work of an instance that is held. */
export const HELD = 'held: too many instances were lost at once';

/** The losses, compared with the cap. */
export interface LossCount {
  /** Losses in the window. */
  count: number;
  /** How many there may be. */
  cap: number;
  /** Until when the operator lets them pass, in milliseconds since the epoch; null: the cap holds. */
  acceptedUntil: number | null;
}

/**
 * Counts the instances that were lost on the platform. `maxLosses.share` is of the instances that there were before
 * the losses.
 */
export async function countLosses(
  { losses, instances, marks }: Pick<Reader, 'losses' | 'instances' | 'marks'>,
  { share, least, windowMs }: LossCapOptions,
  now: number,
): Promise<LossCount> {
  const count = await losses.countSince(now - windowMs);
  const statuses = await instances.countByStatus();
  const live = statuses
    .filter(({ status }) => status === 'ONLINE' || status === 'STOPPING' || status === 'STOPPED')
    .reduce((sum, entry) => sum + entry.count, 0);
  const until = await marks.get('losses_accepted_until');
  return {
    count,
    cap: Math.max(least, Math.floor(share * (live + count))),
    acceptedUntil: until !== null && now < until ? until : null,
  };
}

/**
 * Limits how many instances may end as lost. When a platform loses many machines at once, its answers are more likely
 * wrong than the machines gone: beyond the cap an instance keeps its state until an operator accepts the losses. O:
 * 404 and ERROR are final for the client.
 */
export class LossCap {
  readonly #deps: Deps;
  /** When each instance that is held was last tried. */
  readonly #held = new Map<string, number>();
  #alarmedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Instances that this process has lately held. */
  get held(): number {
    const { clock, options } = this.#deps;
    for (const [id, at] of this.#held) if (clock.now() - at > 2 * options.lastRetryMs) this.#held.delete(id);
    return this.#held.size;
  }

  /** Counts the loss of `record` in the transaction that writes it; false: it is not to be written. */
  async admits(tx: Transaction, { id }: InstanceRecord): Promise<boolean> {
    const { clock, options } = this.#deps;
    const now = clock.now();
    const losses = await countLosses(tx, options.maxLosses, now);
    if (losses.acceptedUntil === null && losses.count >= losses.cap) {
      this.#held.set(id, now);
      this.#alarm(losses, now);
      return false;
    }
    await tx.losses.add({ instanceId: id, at: now });
    this.#held.delete(id);
    return true;
  }

  /** Logs at most once per window. */
  #alarm({ count, cap }: LossCount, now: number): void {
    const { log, options } = this.#deps;
    if (now - this.#alarmedAt < options.maxLosses.windowMs) return;
    this.#alarmedAt = now;
    log.error(
      { losses: count, cap, windowMs: options.maxLosses.windowMs },
      'the platform has lost as many instances as the cap allows: further ones keep their state. ' +
        'Check the platform; if they are really lost, `berth losses accept` ends them',
    );
  }
}
