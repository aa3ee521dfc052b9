import type { InstanceRecord } from '../../model/records.ts';
import type { Lease } from '../../model/work.ts';
import { observe } from '../../platform/call-platform.ts';
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
  const { driver, clock } = context;
  const isOver = isPastDeadline(lease, clock.now());
  const found = isOver ? undefined : await observe(context, () => driver.get(record.ownerRef));
  const hasNothing = isOver || found?.answer === 'gone';
  if (!hasNothing) await readConsole(context, record);
  await settleInstance(context, lease, async () => {
    const { deadlineAt } = lease;
    const now = clock.now();
    if (hasNothing || deadlineAt === null || now >= deadlineAt) return { step: 'destroy' };
    return { step: 'again', afterMs: Math.min(deadlineAt - now, LONGEST_REST_MS) };
  });
}
