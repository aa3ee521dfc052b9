import { type HistoryEvent, isSameFailure } from '../model/history.ts';
import type { Transaction } from '../model/store.ts';
import {
  type InstanceWorkKind,
  isOverdue,
  type Lease,
  volumeMoveOf,
  type WorkProgress,
} from '../model/work.ts';
import type { ReconcileContext, Recording } from '../platform/context.ts';

/** A step keeps failing after so many failed attempts, if it is due for this time, in milliseconds. */
const FAILING_AFTER = { attempts: 5, ms: 60_000 };
/** How long a step without a deadline may take before that is an alarm, in milliseconds. */
const LONG_MS = 10 * 60_000;
/**
 * How long the alarm of a failing step stays open after a try, in milliseconds. It is longer than any pause between two
 * tries.
 */
const FAILING_FOR_MS = 15 * 60_000;

/** The share of an instance's window after which a step that is not done is an alarm. */
const ALARM_AFTER_SHARE = 0.5;
/** The steps whose deadline is the end of the window in which the instance must be ONLINE. */
const IN_WINDOW: ReadonlySet<string> = new Set<InstanceWorkKind>(['create', 'verify', 'start', 'restart']);

const KEEPS_FAILING = 'a step keeps failing and is tried again: check the platform';
const STUCK = 'half of the time for a step has passed, and it is not done: look for the cause';
const TAKES_LONG =
  'a step is not done after ten minutes, and Berth goes on with it: look for the cause on the platform';
const UNREQUESTED = 'Berth itself stops or removes the machine of an instance';
const OVERDUE = 'a phase of the platform takes longer than the platform itself allows: check it there';
const UNFINISHED = 'the platform has not finished it';

/** How a step was settled. */
export interface Settled {
  next: {
    step: string;
    problem?: string;
    because?: string;
    cookie?: string;
    afterMs?: number;
    isAlarm?: boolean;
    isHeld?: boolean;
  };
  progress: WorkProgress | null;
  /** The time in which an instance must be ONLINE, in milliseconds. */
  windowMs?: number | undefined;
}

/** Logs a step that failed, and raises or ends the alarms of its resource. `names`: fields of the log line. */
export function reportStep(
  context: Recording,
  lease: Lease,
  names: object,
  { next, progress, windowMs }: Settled,
): void {
  const { alarms, log } = context;
  const { resourceId: subject, kind: step, attempt } = lease;
  const { problem: reason, afterMs: tryAgainMs, isAlarm, cookie, isHeld } = next;
  if (next.step !== 'again') {
    alarms.end({ kind: 'step_failing', subject });
    if (step === 'destroy')
      for (const kind of ['start_failed', 'machine_gone'] as const) alarms.end({ kind, subject });
  } else {
    if (reason !== undefined) {
      if (isAlarm) raiseFailing(context, lease, names, reason);
      log.info({ ...names, reason, tryAgainMs, step, attempt }, 'a step failed; it will be retried');
    }
    const isUnderWay = reason !== undefined || cookie !== undefined;
    const isExpected = isHeld === true || volumeMoveOf(cookie ?? null) !== undefined;
    if (!isAlarm && isUnderWay && !isExpected)
      alarmStuck(context, lease, names, windowMs, reason ?? progress?.phase ?? UNFINISHED);
  }
  logUnrequested(context, step, names, next);
  alarmOverdue(context, lease, progress);
}

function logUnrequested(
  { log }: Recording,
  step: string,
  names: object,
  { step: next, because: reason }: Settled['next'],
): void {
  if (reason !== undefined) log.warn({ ...names, step, next, reason }, UNREQUESTED);
}

/** How long a step has been due, in milliseconds, without the time before the end of an outage. */
export function underWayMs(
  { clock, health }: Pick<ReconcileContext, 'clock' | 'health'>,
  { waitsSince }: Pick<Lease, 'waitsSince'>,
): number {
  return clock.now() - Math.max(waitsSince, health.trustedSince);
}

/** Whether a step that has failed again is an alarm. A platform that takes long to refuse is one after fewer attempts. */
export function keepsFailing(context: Pick<ReconcileContext, 'clock' | 'health'>, lease: Lease): boolean {
  return lease.attempt >= FAILING_AFTER.attempts && underWayMs(context, lease) >= FAILING_AFTER.ms;
}

/** Raises the alarm of a step that keeps failing. `names`: fields of the log line. */
export function raiseFailing(context: Recording, lease: Lease, names: object, reason: string): void {
  raise(context, lease, names, KEEPS_FAILING, reason);
}

function raise(
  { alarms, platform, log }: Recording,
  { resourceId: subject, kind: step, attempt }: Lease,
  names: object,
  text: string,
  reason: string,
): void {
  const detail = `${step}, attempt ${attempt}: ${reason}`;
  const fields = { ...names, step, attempt, reason };
  alarms.raise({ kind: 'step_failing', subject, platform, text, detail, fields, forMs: FAILING_FOR_MS }, log);
}

/**
 * Raises the alarm of a step that is not done after half of its window, or after ten minutes if it has no deadline:
 * whether it fails or the platform is still at it. `windowMs`: the time in which the instance must be ONLINE.
 */
function alarmStuck(
  context: Recording,
  lease: Lease,
  names: object,
  windowMs: number | undefined,
  reason: string,
): void {
  const { clock, health } = context;
  const { kind, deadlineAt } = lease;
  if (!health.isUp) return;
  if (deadlineAt === null) {
    if (underWayMs(context, lease) >= LONG_MS) raise(context, lease, names, TAKES_LONG, reason);
  } else if (windowMs !== undefined && IN_WINDOW.has(kind)) {
    const isHalfOver = clock.now() >= deadlineAt - windowMs * (1 - ALARM_AFTER_SHARE);
    if (isHalfOver) raise(context, lease, names, STUCK, reason);
  }
}

/** Raises the alarm of a phase that takes longer than the platform's own deadline, and ends it with the phase. */
function alarmOverdue(
  { alarms, platform, clock, log }: Recording,
  { resourceId: subject, resourceKind, kind: step }: Lease,
  progress: WorkProgress | null,
): void {
  if (!isOverdue(progress, clock.now())) {
    alarms.end({ kind: 'phase_overdue', subject });
    return;
  }
  const { phase } = progress;
  const [since, due] = [progress.since, progress.deadlineAt].map((at) => new Date(at).toISOString());
  const detail = `${step}: “${phase}” since ${since}, due ${due}`;
  const fields = { [resourceKind]: subject, step, phase, since, due };
  alarms.raise(
    { kind: 'phase_overdue', subject, platform, text: OVERDUE, detail, fields, forMs: FAILING_FOR_MS },
    log,
  );
}

/** After so many attempts, a failure that differs from the one before has a row only every so many attempts. */
const ROW_EVERY = 10;

/**
 * Adds the step to the history of its instance. Of equal failures in a row, the history has the first and the last. A
 * console is always recorded.
 */
export async function addToHistory(
  { clock, trace }: Recording,
  tx: Transaction,
  lease: Lease,
  next: { step: string; problem?: string; because?: string },
): Promise<void> {
  const now = clock.now();
  const { resourceId: instanceId, kind, attempt } = lease;
  const event = {
    instanceId,
    at: now,
    cause: kind as InstanceWorkKind,
    attempt,
    next: next.step,
    detail: next.problem ?? next.because ?? null,
    calls: trace?.calls.map(({ at: _, ...call }) => call) ?? [],
    console: trace?.console ?? null,
    tookMs: trace === undefined ? null : Math.max(0, Math.round(now - trace.begunAt)),
  };
  const isRow = next.step !== 'again' || event.console !== null;
  await tx.history.step(event, isRow ? 'row' : await placeOfFailure(tx, event));
}

/**
 * Where the history has a step that runs again. The first and the second of equal failures in a row have rows of their
 * own, and each later one takes the place of the second. After ten attempts, only each tenth that fails differently has
 * a row: causes that alternate would add rows without end.
 */
async function placeOfFailure(
  { history }: Transaction,
  event: Pick<HistoryEvent, 'instanceId' | 'cause' | 'next' | 'detail'> & { attempt: number },
): Promise<'row' | 'replacement' | 'omit'> {
  const { instanceId, detail, attempt } = event;
  if (detail === null) return 'omit';
  if (attempt === 1) return 'row';
  const [last, before] = await history.newest(instanceId, 2);
  if (isSameFailure(last, event)) return isSameFailure(before, event) ? 'replacement' : 'row';
  return attempt <= ROW_EVERY || attempt % ROW_EVERY === 0 ? 'row' : 'omit';
}
