import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import { markOf } from '../model/marks.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { PlatformPart, Reader, Transaction } from '../model/store.ts';
import type { LossCapOptions } from './options.ts';
import type { Hosts } from './shared-listing.ts';

interface Deps {
  clock: Clock;
  log: Log;
  alarms: Alarms;
  options: { maxLosses: LossCapOptions; lastRetryMs: number };
}

/** The `lastError` of the work of an instance that the cap holds. */
export const HELD = 'held: too many instances were lost at once';

/** The time in which losses count against the cap. */
export const LOSS_WINDOW_MS = 600_000;

/** The losses, compared with the cap. */
export interface LossCount {
  /** Losses in the window. */
  count: number;
  /** How many losses the cap allows. */
  cap: number;
  /** Until when the operator accepts losses, in milliseconds since the epoch. Null if the cap applies. */
  acceptedUntil: number | null;
}

/**
 * Counts the instances lost on a platform or on one of its hosts. `share` applies to the number of instances before the
 * losses.
 */
export async function countLosses(
  { losses, instances, marks }: Pick<Reader, 'losses' | 'instances' | 'marks'>,
  { share, least }: LossCapOptions,
  now: number,
  of: PlatformPart,
): Promise<LossCount> {
  const count = await losses.countSince(now - LOSS_WINDOW_MS, of);
  const statuses = await instances.countByStatus(of);
  const live = statuses
    .filter(({ status }) => status === 'ONLINE' || status === 'STOPPING' || status === 'STOPPED')
    .reduce((sum, entry) => sum + entry.count, 0);
  return {
    count,
    cap: Math.max(least, Math.floor(share * (live + count))),
    acceptedUntil: await acceptedUntil(marks, of.platform, now),
  };
}

/** Until when the operator accepts missing machines as lost. Null if they are not accepted now. */
async function acceptedUntil(marks: Reader['marks'], platform: string, now: number): Promise<number | null> {
  const until = await marks.get(markOf(platform, 'losses_accepted_until'));
  return until !== null && now < until ? until : null;
}

export interface Losing {
  store: { read: Pick<Reader, 'marks'> };
  platform: string;
  clock: Pick<Clock, 'now'>;
}

/** Whether the operator currently accepts losses of the platform. */
export async function areLossesAccepted({ store, platform, clock }: Losing): Promise<boolean> {
  return (await acceptedUntil(store.read.marks, platform, clock.now())) !== null;
}

/**
 * The hosts of an answer after the operator's decision. While losses are accepted, the hosts that answer count as all
 * hosts of the platform. A silent host must still answer first.
 */
export async function judgeHosts(context: Losing, hosts: Hosts): Promise<Hosts> {
  if (hosts.answered === 'all' || hosts.silent.size > 0) return hosts;
  return (await areLossesAccepted(context)) ? { ...hosts, answered: 'all' } : hosts;
}

/**
 * Limits how many instances of a platform, and of each of its hosts, may end as lost. If many are missing at once, the
 * answers are more likely wrong. Beyond the cap, an instance keeps its state until an operator accepts the losses. O:
 * 404 and ERROR are final for the client.
 */
export class LossCap {
  readonly #deps: Deps;
  /** The time of the last try for each held instance. */
  readonly #held = new Map<string, number>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** How many instances this process has recently held. */
  get held(): number {
    const { clock, options } = this.#deps;
    for (const [id, at] of this.#held) if (clock.now() - at > 2 * options.lastRetryMs) this.#held.delete(id);
    return this.#held.size;
  }

  /**
   * Counts the loss of `record` in the transaction that writes it. If it returns false, the loss must not be written.
   */
  async admits(tx: Transaction, { id, platform, host }: InstanceRecord): Promise<boolean> {
    const { clock, options } = this.#deps;
    const now = clock.now();
    for (const of of host === null ? [{ platform }] : [{ platform }, { platform, host }]) {
      const losses = await countLosses(tx, options.maxLosses, now, of);
      if (losses.acceptedUntil !== null || losses.count < losses.cap) continue;
      this.#held.set(id, now);
      this.#alarm(losses, of);
      return false;
    }
    await tx.losses.add({ instanceId: id, at: now });
    this.#held.delete(id);
    return true;
  }

  /** The alarm stays open while instances are held, since the step of each is retried. */
  #alarm({ count, cap }: LossCount, { platform, host }: PlatformPart): void {
    const { log, alarms, options } = this.#deps;
    const where = host === undefined ? 'the platform' : 'one host of the platform';
    alarms.raise(
      {
        kind: 'losses_held',
        subject: host === undefined ? platform : `${platform}/${host}`,
        platform,
        text:
          `${where} has reached the cap on lost instances: further missing instances keep their state. ` +
          'Check it; if the instances are really lost, `berth losses accept` ends them',
        detail: `${count} lost, the cap is ${cap}`,
        fields: { losses: count, cap, windowMs: LOSS_WINDOW_MS, ...(host !== undefined && { host }) },
        forMs: 2 * options.lastRetryMs,
      },
      log,
    );
  }
}
