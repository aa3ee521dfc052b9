import { type InstanceWorkKind, isOverdue, type Lease, type WorkProgress } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';

export const ALARM_AFTER_ATTEMPTS = 10;
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
const OVERDUE = 'a phase of the platform takes longer than the platform itself allows: check it there';
const UNFINISHED = 'the platform has not finished it';
const inLogAlready = { error: () => undefined };

/** How a step was settled. */
export interface Settled {
  next: { step: string; problem?: string; afterMs?: number; isAlarm?: boolean };
  progress: WorkProgress | null;
  /** The time in which an instance must be ONLINE, in milliseconds. */
  windowMs?: number | undefined;
}

/** Logs a step that failed, and raises or ends the alarms of its resource. `names`: fields of the log line. */
export function reportStep(
  context: ReconcileContext,
  lease: Lease,
  names: object,
  { next, progress, windowMs }: Settled,
): void {
  const { alarms, log } = context;
  const { resourceId: subject, kind: step, attempt } = lease;
  const { problem: reason, afterMs: tryAgainMs, isAlarm } = next;
  if (next.step !== 'again') {
    alarms.end({ kind: 'step_failing', subject });
    if (step === 'destroy') alarms.end({ kind: 'start_failed', subject });
  } else {
    if (reason !== undefined) {
      const fields = { ...names, reason, tryAgainMs, step, attempt };
      if (isAlarm) raiseFailing(context, lease, reason);
      if (isAlarm && attempt % ALARM_AFTER_ATTEMPTS === 0) log.error(fields, KEEPS_FAILING);
      else log.info(fields, 'a step failed; it will be retried');
    }
    if (!isAlarm && windowMs !== undefined)
      alarmStuck(context, lease, windowMs, reason ?? progress?.phase ?? UNFINISHED);
  }
  alarmOverdue(context, lease, progress);
}

/** Raises the alarm of a step that keeps failing. The caller logs the cause. */
export function raiseFailing(
  { alarms, platform }: ReconcileContext,
  { resourceId: subject, kind: step, attempt }: Lease,
  reason: string,
): void {
  const detail = `${step}, attempt ${attempt}: ${reason}`;
  const forMs = FAILING_FOR_MS;
  alarms.raise({ kind: 'step_failing', subject, platform, text: KEEPS_FAILING, detail, forMs }, inLogAlready);
}

/**
 * Raises the alarm of a step that is not done after half of its window, whether it fails or the platform is still at it.
 * `windowMs`: the time in which the instance must be ONLINE.
 */
function alarmStuck(
  { alarms, platform, clock, health, log }: ReconcileContext,
  { resourceId: subject, kind: step, attempt, deadlineAt }: Lease,
  windowMs: number,
  reason: string,
): void {
  if (!IN_WINDOW.has(step) || deadlineAt === null || !health.isUp) return;
  if (clock.now() < deadlineAt - windowMs * (1 - ALARM_AFTER_SHARE)) return;
  const detail = `${step}, attempt ${attempt}: ${reason}`;
  const fields = { instance: subject, step, attempt, reason };
  const alarm = { kind: 'step_failing', subject, platform, text: STUCK, detail, fields } as const;
  alarms.raise({ ...alarm, forMs: FAILING_FOR_MS }, log);
}

/** Raises the alarm of a phase that takes longer than the platform's own deadline, and ends it with the phase. */
function alarmOverdue(
  { alarms, platform, clock, log }: ReconcileContext,
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
