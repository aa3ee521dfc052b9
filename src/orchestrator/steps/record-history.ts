import { type HistoryEvent, isSameFailure } from '../model/history.ts';
import type { Transaction } from '../model/store.ts';
import type { InstanceWorkKind, Lease } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';

/** After so many attempts, a failure that differs from the one before has a row only every so many attempts. */
const ROW_EVERY = 10;

/**
 * Adds the step to the history of its instance. Of equal failures in a row, the history has the first and the last. A
 * console is always recorded.
 */
export async function addToHistory(
  { clock, trace }: ReconcileContext,
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
