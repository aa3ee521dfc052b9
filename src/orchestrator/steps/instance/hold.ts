import type { InstanceRecord } from '../../model/records.ts';
import type { Lease } from '../../model/work.ts';
import { readMachine } from '../../platform/confirm-gone.ts';
import { mayAppearForMs } from '../../platform/visibility.ts';
import { readConsole } from '../console-tail.ts';
import type { StepContext } from '../context.ts';
import { isPastDeadline } from '../retry.ts';
import { settleInstance } from '../settle.ts';

/** For so long it rests, in milliseconds: work that waits for more than two hours counts as misdated, and is due at once. */
const LONGEST_REST_MS = 60 * 60_000;

/**
 * ERROR: the machine is kept for the operator until the deadline, and its unit with it. What it wrote to its console is
 * read at once, each hour, and whenever an operator has the step tried. The tenant's DELETE and `releaseInstance` put a
 * destroy in its place.
 */
export async function stepHold(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const { clock } = context;
  const observedAt = clock.now();
  const found = isPastDeadline(lease, observedAt) ? undefined : await readMachine(context, record);
  const isGone = found?.answer === 'gone';
  if (found !== undefined && !isGone) await readConsole(context, record);
  await settleInstance(context, lease, async (_, { createOpenUntil }) => {
    const { deadlineAt } = lease;
    const now = clock.now();
    const hiddenMs = isGone ? mayAppearForMs(context, createOpenUntil, observedAt) : 0;
    const hasNothing = isGone && hiddenMs === 0;
    if (hasNothing || isPastDeadline(lease, now) || deadlineAt === null) return { step: 'destroy' };
    return { step: 'again', afterMs: Math.min(deadlineAt - now, hiddenMs || LONGEST_REST_MS) };
  });
}
