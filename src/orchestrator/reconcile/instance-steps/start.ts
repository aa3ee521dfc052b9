import type { InstanceRecord } from '../../instances/instance-record.ts';
import { amend } from '../../instances/transition.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { vanished } from './observe.ts';

/** STOPPED → (the machine runs) → the SSH proof → ONLINE. A start that fails is taken back. */
export async function stepStart(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const step = await callStep(context, lease, () => context.driver.start(record.ownerRef, lease.cookie));
  const isClaimedGone = step.outcome === 'failed' && step.code === 'gone';
  const found = isClaimedGone ? await look(context, () => context.driver.get(record.ownerRef)) : undefined;
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    const now = context.clock.now();
    if (step.outcome === 'done') {
      await amend(tx, current, now, { endpoint: step.value.endpoint ?? current.endpoint });
      return { step: 'verify', deadlineAt: lease.deadlineAt };
    }
    const isLate = lease.deadlineAt !== null && now >= lease.deadlineAt;
    if (step.outcome === 'pending' && !isLate)
      return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (found?.answer === 'gone') return vanished(context, tx, current);
    if (step.outcome === 'failed' && !isFinal(step) && !isLate)
      return retry(context, lease, describeFailure(step), step.retryAfterMs);
    const reason = step.outcome === 'failed' ? describeFailure(step) : 'the machine did not start in time';
    context.log.warn({ instance: current.id, reason }, 'a start failed; the instance stays stopped');
    if (current.attachCycle) await amend(tx, current, now, { attachCycle: false });
    return { step: 'stop' };
  });
}
