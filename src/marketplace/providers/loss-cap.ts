import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { LossRecord } from '../model/ledger-records.ts';
import type { LossCapOptions, MarketplaceOptions } from '../model/options.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';

const ALARM_EVERY_MS = 60 * 60_000;
/** What a deployment that is held says in the log. */
export const HELD = '404, and the provider denies too much at once: it is held until an operator has looked';

/** Where the losses at a provider stand against the cap. */
export interface LossCount {
  providerId: string;
  /** What ended by a denial within the window. */
  count: number;
  /** How many may. */
  cap: number;
  held: number;
  /** Until when the operator lets them pass, in milliseconds since the epoch; null: the cap holds. */
  acceptedUntil: number | null;
}

const acceptedUntilKey = (providerId: string) => `losses_accepted_until:${providerId}`;
const alarmedAtKey = (providerId: string) => `losses_told_at:${providerId}`;

/** Counts what a provider denies. `share` is of what there was before that. */
export async function countLosses(
  { losses, settings }: Pick<Reader, 'losses' | 'settings'>,
  providerId: string,
  { share, least, windowMs }: LossCapOptions,
  now: number,
): Promise<LossCount> {
  const count = await losses.countSince(providerId, now - windowMs);
  const held = await losses.held(providerId);
  const until = Number((await settings.get(acceptedUntilKey(providerId))) ?? 0);
  return {
    providerId,
    count,
    held: held.length,
    cap: Math.max(least, Math.floor(share * ((await losses.countLive(providerId)) + count))),
    acceptedUntil: now < until ? until : null,
  };
}

/** Whether a 404 of this provider proves that something is gone: not while it denies too much. */
export async function isNotFoundTrusted(
  { store: { read }, clock }: { store: Store; clock: Clock },
  providerId: string,
): Promise<boolean> {
  if ((await read.losses.held(providerId)).length === 0) return true;
  return clock.now() < Number((await read.settings.get(acceptedUntilKey(providerId))) ?? 0);
}

type LostSubject = Pick<LossRecord, 'subjectId' | 'kind' | 'providerId'>;

/** `alarm`: what an operator is to be told, once the transaction is committed. */
export interface Admission {
  isAdmitted: boolean;
  alarm: LossCount | null;
}

/**
 * Counts what ends because its provider denies it, in the transaction that ends it; not admitted, it must not end. A
 * provider that was given the key of another account denies everything. One that is held holds all that follow, however
 * much time passes, until the provider knows it again, it ends otherwise, or an operator accepts. The caller has begun
 * the transaction with `tx.losses.lock`.
 */
export async function admitLoss(
  { clock, options }: { clock: Clock; options: MarketplaceOptions },
  tx: Pick<Transaction, 'losses' | 'settings'>,
  lost: LostSubject,
): Promise<Admission> {
  const { subjectId, providerId } = lost;
  const now = clock.now();
  const known = await tx.losses.bySubject(subjectId);
  if (known?.isHeld === false) return { isAdmitted: true, alarm: null };
  const losses = await countLosses(tx, providerId, options.maxLosses, now);
  const othersHeld = losses.held - (known === null ? 0 : 1);
  if (losses.acceptedUntil !== null || (losses.count < losses.cap && othersHeld === 0)) {
    await tx.losses.put({ ...lost, at: now, isHeld: false });
    return { isAdmitted: true, alarm: null };
  }
  if (known === null) await tx.losses.put({ ...lost, at: now, isHeld: true });
  const alarmedAt = Number((await tx.settings.get(alarmedAtKey(providerId))) ?? 0);
  if (now - alarmedAt < ALARM_EVERY_MS) return { isAdmitted: false, alarm: null };
  await tx.settings.put(alarmedAtKey(providerId), String(now));
  return { isAdmitted: false, alarm: { ...losses, held: othersHeld + 1 } };
}

/** Tells an operator that a provider denies more than it may end. */
export function logLossAlarm(log: Log, { providerId, count, cap, held }: LossCount): void {
  log.error(
    { provider: providerId, losses: count, cap, held },
    'the provider denies more than may end by that: what else it denies keeps its state, and is billed up to its last ' +
      `answer only. See whether its key and base_url are those of our account; if all of it is really lost, ` +
      `\`berth marketplace losses accept ${providerId}\` ends it`,
  );
}

/** From now until `until`, what the provider denies ends. */
export async function acceptLosses(
  { store }: { store: Store },
  providerId: string,
  until: number,
): Promise<void> {
  await store.transact((tx) => tx.settings.put(acceptedUntilKey(providerId), String(until)));
}
