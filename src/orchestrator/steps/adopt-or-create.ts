import type { FinalCode } from '../model/failure.ts';
import type { OwnerRef, Presence, Step } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import type { VisibilityUpdate } from '../platform/visibility.ts';
import type { StepContext } from './context.ts';
import { type Failed, isFinal, isRepeated } from './fail.ts';
import type { Next } from './settle.ts';

/** The result of the search before a create is sent. */
export type BeforeCreate<T> =
  | { answer: 'send' }
  | Presence<T>
  /** The resource is absent, but an earlier create may still make it within this time. */
  | { answer: 'absent'; waitMs: number };

interface Creatable {
  ownerRef: OwnerRef;
  createdAt: number;
  host: string | null;
}

/**
 * Searches for the resource of an earlier create before one is sent: after an attempt with an unknown outcome, or if
 * the row is older than this process, since a restored row may not show later attempts. If the driver places resources
 * and the row has no host, no create was sent.
 */
export async function findEarlierCreate<T>(
  context: StepContext,
  lease: Lease,
  { ownerRef, createdAt, host }: Creatable,
  { get, place }: { get(ref: OwnerRef): Promise<Presence<T>>; place?: unknown },
): Promise<BeforeCreate<T>> {
  const isOlder = createdAt < context.startedAt;
  const wasSent = isRepeated(lease) && (host !== null || place === undefined);
  if (lease.cookie !== null || !(wasSent || isOlder)) return { answer: 'send' };
  const found: Presence<T> = await get(ownerRef);
  if (found.answer !== 'gone') return found;
  // A repeated first attempt was refused and not counted, so it sent nothing.
  const hasWaited = lease.attempt === 1 ? lease.lastError !== null : lease.waitedAttempt === lease.attempt;
  return { answer: 'absent', waitMs: hasWaited ? 0 : context.driver.manifest.createVisibleWithinMs };
}

/**
 * The row with the host that has the resource now, if an earlier create made one and an operator has moved it since: a
 * create on the old host would make a second one. If the platform chooses hosts, the row is unchanged.
 */
export function atItsHost<Row extends Pick<Creatable, 'host'>>(
  row: Row,
  before: BeforeCreate<{ host?: string }>,
  place: unknown,
): Row {
  const isMadeThere = before.answer === 'observed' && place !== undefined;
  return isMadeThere ? { ...row, host: before.value.host ?? row.host } : row;
}

/**
 * Postpones the attempt until an earlier create can no longer appear. The wait does not count as an attempt. If the
 * process dies after the wait, its claim counts, and the next claim waits again.
 */
export function waitForEarlier(lease: Lease, waitMs: number): Next {
  const { attempt } = lease;
  const problem = `an earlier create may still show up before attempt ${attempt}`;
  return { step: 'again', afterMs: waitMs, attempt: attempt - 1, waitedAttempt: attempt, problem };
}

/** Whether a create failed for good and cannot have made anything unnoticed. */
export function isRefused(failed: Failed): failed is Failed & { code: FinalCode } {
  return isFinal(failed) && failed.sideEffect !== 'possible';
}

/** The outcome of a create step. Some outcomes mean that nothing was sent. */
type Attempted = Step<unknown> | { outcome: 'building' | 'absent' | 'unknown' | 'open' };

/** The update after an attempt to create. The create stays open while it may be sent again. */
export function afterCreate(
  attempted: Attempted,
  { cookie }: Pick<Lease, 'cookie'>,
  now: number,
): VisibilityUpdate {
  if (attempted.outcome === 'done') return () => now;
  // With a cookie, a refusal proves nothing about the results of earlier calls.
  const isRefusal = attempted.outcome === 'failed' && isFinal(attempted) && attempted.sideEffect === 'none';
  return isRefusal && cookie === null ? () => null : (known) => known;
}
