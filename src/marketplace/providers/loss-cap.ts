import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { LossRecord } from '../model/ledger-records.ts';
import type { LossCapOptions, MarketplaceOptions } from '../model/options.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';

/** The time in which losses count against the cap. */
export const LOSS_WINDOW_MS = 600_000;
const ALARM_EVERY_MS = 60 * 60_000;
/** The reason in the log for a held deployment. */
export const HELD = '404, but the provider lost too many at once: held until an operator decides';

/** The losses at a provider, compared with the cap. */
export interface LossCount {
  providerId: string;
  /** Deployments and volumes that ended by a 404 within the window. */
  count: number;
  /** The cap on `count`. */
  cap: number;
  held: number;
  /** When the operator's acceptance of losses ends, in milliseconds since the epoch; null: the cap applies. */
  acceptedUntil: number | null;
}

const acceptedUntilKey = (providerId: string) => `losses_accepted_until:${providerId}`;
const alarmedAtKey = (providerId: string) => `losses_told_at:${providerId}`;

/** Counts a provider's losses. `share` is relative to the deployments and volumes before the losses. */
export async function countLosses(
  { losses, settings }: Pick<Reader, 'losses' | 'settings'>,
  providerId: string,
  { share, least }: LossCapOptions,
  now: number,
): Promise<LossCount> {
  const count = await losses.countSince(providerId, now - LOSS_WINDOW_MS);
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

/** While losses are held, a 404 proves nothing, unless an operator has accepted them. */
export async function isNotFoundTrusted(
  { store: { read }, clock }: { store: Store; clock: Clock },
  providerId: string,
): Promise<boolean> {
  if ((await read.losses.held(providerId)).length === 0) return true;
  return clock.now() < Number((await read.settings.get(acceptedUntilKey(providerId))) ?? 0);
}

type LostSubject = Pick<LossRecord, 'subjectId' | 'kind' | 'providerId'>;

/** The result of {@link admitLoss}. The caller logs the `alarm` after the commit. */
export interface Admission {
  isAdmitted: boolean;
  alarm: LossCount | null;
}

/**
 * Decides in the transaction that would end the subject; `tx.losses.lock` comes first. A subject whose loss is not
 * admitted must not end: a provider with another account's key answers 404 for everything. While one loss is held,
 * later ones are held too.
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

export function logLossAlarm(log: Log, { providerId, count, cap, held }: LossCount): void {
  log.error(
    { provider: providerId, losses: count, cap, held },
    'the provider answers 404 for more deployments and volumes than the limit on losses: the rest keep their state and ' +
      `are billed only up to its last answer. Check that its key and base_url belong to our account; if the losses are ` +
      `real, \`berth marketplace losses accept ${providerId}\` ends them`,
  );
}

export async function acceptLosses(
  { store }: { store: Store },
  providerId: string,
  until: number,
): Promise<void> {
  await store.transact((tx) => tx.settings.put(acceptedUntilKey(providerId), String(until)));
}
