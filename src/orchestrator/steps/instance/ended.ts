import { amend, transition } from '../../instances/transition.ts';
import { recordedOrder } from '../../model/destroy-order.ts';
import { cleanText } from '../../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { askConsole } from '../../platform/call-platform.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation, mayAppearForMs } from '../../platform/visibility.ts';
import { dropAttachmentsOf } from '../../volumes/attach.ts';
import { isPastDeadline, LONGEST_REST_MS, retry } from '../fail.ts';
import { type Again, finish, type Next, settleInstance } from '../settle.ts';

/**
 * Keeps the machine and unit of an instance in ERROR for the operator until the deadline, or without one until a
 * request. The console is read at once, every hour, and at an operator's retry. The tenant's DELETE and
 * `releaseInstance` replace the hold with a destroy; at the deadline, the operator's policy orders it.
 */
export async function stepHold(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const { clock, alarms } = context;
  const observedAt = clock.now();
  const found = isPastDeadline(lease, observedAt) ? undefined : await confirmMachine(context, record);
  const isGone = found?.answer === 'gone';
  if (found !== undefined && !isGone) await readConsole(context, record);
  await settleInstance(context, lease, async (tx, current, lease) => {
    const { deadlineAt } = lease;
    const now = clock.now();
    const hiddenMs = isGone ? mayAppearForMs(context, current.createOpenUntil, observedAt) : 0;
    if (isGone && hiddenMs === 0) return { step: current.destroyOrder === null ? 'release' : 'destroy' };
    if (isPastDeadline(lease, now)) {
      const order = recordedOrder({ reason: 'policy', by: alarms.server, at: now });
      if (current.destroyOrder === null) await amend(tx, current, now, { destroyOrder: order });
      return { step: 'destroy', because: 'retention.failed_machines_minutes are over' };
    }
    const restMs = Math.min((deadlineAt ?? Number.POSITIVE_INFINITY) - now, hiddenMs || LONGEST_REST_MS);
    return { step: 'again', afterMs: restMs, attempt: lease.attempt - 1 };
  });
}

/**
 * Releases the unit of an instance that ended without a request, once its time is over and its machine is proved gone.
 * While the platform shows the machine, the unit stays claimed and the machine is not touched; the sweep raises an
 * alarm. An instance that its platform removes then becomes DESTROYED. If that takes long, an operator has to order it.
 */
export async function stepRelease(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const found = await confirmMachine(context, record, { isBeingRemoved: true });
  await settleInstance(
    context,
    lease,
    async (tx, current, lease) => {
      const { deadlineAt, attempt } = lease;
      const now = context.clock.now();
      if (found.answer === 'unknown') return retry(context, lease, found.reason);
      if (found.answer === 'observed') {
        if (current.status === 'DESTROYING')
          return whileRemoving(lease, now - current.updatedAt > LONGEST_RECLAIM_MS);
        return { step: 'again', afterMs: LONGEST_REST_MS, attempt: attempt - 1 };
      }
      const hiddenMs = mayAppearForMs(context, current.createOpenUntil, found.observedAt);
      const restMs = deadlineAt === null || isPastDeadline(lease, now) ? hiddenMs : deadlineAt - now;
      if (restMs > 0)
        return { step: 'again', afterMs: Math.min(restMs, LONGEST_REST_MS), attempt: attempt - 1 };
      return endInstance(context, tx, current);
    },
    { visibility: afterObservation(found) },
  );
}

const POLL_MS = 2_000;
const OVERDUE_POLL_MS = 60_000;
/** A platform that removes a machine for its own reasons is done sooner, in milliseconds. */
const LONGEST_RECLAIM_MS = 10 * 60_000;

const OVERDUE =
  'the platform has been removing its machine for more than 10 minutes without an order of Berth: `berth instances rm` orders it';

/**
 * Waits for a machine that its platform is removing without an order. If that is overdue, an alarm asks the operator for the
 * order: only people order a removal.
 */
function whileRemoving({ attempt }: Lease, isOverdue: boolean): Again {
  return isOverdue
    ? { step: 'again', afterMs: OVERDUE_POLL_MS, problem: OVERDUE, isAlarm: true }
    : { step: 'again', afterMs: POLL_MS, attempt: attempt - 1 };
}

/** Waits within `step`. The removal is overdue past the deadline of the work, which survives a restart. */
export function awaitRemoval({ clock }: Recording, lease: Lease, step: 'observe' | 'stop'): Next {
  const now = clock.now();
  const overdueAt = now + LONGEST_RECLAIM_MS;
  // A later deadline was written by a clock that was ahead.
  if (lease.deadlineAt === null || lease.deadlineAt > overdueAt) return { step, deadlineAt: overdueAt };
  return whileRemoving(lease, now >= lease.deadlineAt);
}

const MAX_LINES = 200;
const MAX_BYTES = 16 * 1024;
/** A private key. Only its kind is kept; of other secrets only the name is kept. */
const KEY_BLOCK = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g;
/** A private key whose beginning is cut off by the tail. */
const CUT_KEY_BLOCK = /^[\s\S]*-----END ([A-Z0-9 ]*PRIVATE KEY)-----/;
const SECRET =
  /((?:password|passwd|passphrase|secret|token|api[-_ ]?key|authorization)[^\s:=]*\s*[:=]\s*)\S.*/gi;

/**
 * Logs the end of a failed machine's console as one line and keeps it for the history, if the platform supports that. A
 * failure delays nothing.
 */
export async function readConsole(context: Recording & Calling, record: InstanceRecord): Promise<void> {
  const { driver, log, trace } = context;
  const { consoleTail } = driver;
  if (consoleTail === undefined) return;
  const names = instanceLogNames(record);
  const answer = await askConsole(context, () => consoleTail.call(driver, record.ownerRef), toLines);
  if ('problem' in answer)
    log.info({ ...names, reason: answer.problem }, 'the console of a failed machine could not be read');
  else if (answer.value.length > 0) {
    log.warn({ ...names, console: answer.value }, 'the end of the console of a failed machine');
    if (trace !== undefined) trace.console = answer.value.join('\n');
  }
}

/** The last lines, each cleaned. */
function toLines(tail: string | undefined): string[] {
  if (tail === undefined) return [];
  const text = Buffer.from(tail).subarray(-MAX_BYTES).toString();
  const lines = text
    .replace(KEY_BLOCK, '[$1]')
    .replace(CUT_KEY_BLOCK, '[$1]')
    .replace(SECRET, '$1[…]')
    .split(/\r\n|[\r\n]/);
  return lines
    .map(cleanText)
    .filter((line) => line !== '')
    .slice(-MAX_LINES);
}

/** Releases the claim and the attachments of an instance whose machine no longer runs. `because`: see {@link Next}. */
export async function endInstance(
  { clock, log, machines }: Recording & Calling,
  tx: Transaction,
  record: InstanceRecord,
  because?: string,
): Promise<Next> {
  const now = clock.now();
  machines.partialListings.removed(record.ownerRef);
  await Promise.all([dropAttachmentsOf(tx, record.id, now), tx.claims.release(record.id)]);
  const spec = { ...record.spec, cloudInit: undefined };
  if (record.status === 'DESTROYING')
    await transition(tx, record, 'DESTROYED', now, { spec }, { detail: because ?? null });
  log.info(
    { ...instanceLogNames(record), status: record.status, reason: because },
    'the machine of the instance no longer runs: its unit is free',
  );
  return because === undefined ? finish : { step: 'finish', because };
}
