import type { InstanceRecord } from '../../instances/instance-record.ts';
import { amend } from '../../instances/transition.ts';
import type { Step } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { failInstance } from './fail.ts';
import { vanished } from './observe.ts';

/**
 * STOPPED → (the machine runs) → the SSH proof → ONLINE. A start that fails is taken back. It also brings back a
 * machine that powered itself off while PROVISIONING.
 */
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
    if (current.status === 'PROVISIONING') return notStarted(context, lease, tx, current, step);
    context.log.warn({ instance: current.id, reason }, 'a start failed; the instance stays stopped');
    if (current.attachCycle) await amend(tx, current, now, { attachCycle: false });
    return { step: 'stop' };
  });
}

/** A create that needed a start: what is certain ends it, everything else is left to its deadline. */
async function notStarted(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  step: Step<unknown>,
): Promise<Next> {
  if (step.outcome !== 'failed' || !isFinal(step)) return { step: 'verify', deadlineAt: lease.deadlineAt };
  const text = `The machine powered itself off and could not be started again (${describeFailure(step)}).`;
  return failInstance(context, tx, record, text);
}
