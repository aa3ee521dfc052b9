import type { InstanceRecord } from '../instances/instance-record.ts';
import { amend } from '../instances/transition.ts';
import type { ObservedMachine, OwnerRef } from '../ports/platform-driver.ts';
import type { Transaction } from '../ports/store.ts';
import { BEYOND_CAPACITY } from './adopt-machine.ts';
import { look } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import { failInstance } from './instance-steps/fail.ts';
import { putInstanceWork } from './put-work.ts';
import type { InstanceWorkKind } from './work.ts';

/**
 * Brings the rows of a restored database, and the work that the backup held, to where the machines are now. What
 * was begun before the backup has ended since, and its cookies and deadlines say nothing any more.
 *
 * @param machines as listed, in a listing that began at `begunAt`
 * @returns whether every row could be dealt with
 */
export async function followMachines(
  context: ReconcileContext,
  machines: ReadonlyMap<OwnerRef, ObservedMachine>,
  begunAt: number,
): Promise<boolean> {
  let isComplete = true;
  for (const { id, ownerRef, status } of await context.store.read.instances.list({})) {
    let machine = machines.get(ownerRef);
    if (machine === undefined && status === 'PROVISIONING') {
      // A listing may lack what is there: whether a create is sent again is decided by a look of its own.
      const found = await look(context, () => context.driver.get(ownerRef));
      if (found.answer === 'unknown') {
        isComplete = false;
        continue;
      }
      if (found.answer === 'observed') machine = found.value;
    }
    await context.store.transact(async (tx) => {
      const record = await tx.instances.byId(id);
      // What changed after the listing began did so in this life, or in that of another replica.
      if (record !== null && record.updatedAt < begunAt) await follow(context, tx, record, machine);
    });
  }
  return isComplete;
}

async function follow(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  machine: ObservedMachine | undefined,
): Promise<void> {
  const work = await tx.work.of(record.id);
  const isUp = machine?.power === 'running' || machine?.power === 'starting';
  if (record.status === 'PROVISIONING' && work?.kind === 'create' && machine !== undefined)
    return verify(context, tx, record, machine);
  if (record.status === 'PROVISIONING' && work?.kind === 'create')
    return begin(context, tx, record, work.deadlineAt);
  // It was started after the backup: it is proved and becomes ONLINE again.
  if (record.status === 'STOPPED' && isUp) return verify(context, tx, record, machine);
  if (work === null) return;
  const now = context.clock.now();
  const deadlineAt = work.deadlineAt === null ? null : now + record.spec.onlineWithinMs;
  await putInstanceWork(tx, record.id, work.kind as InstanceWorkKind, now, deadlineAt);
}

/** The machine is there: what is left is the SSH proof, within a window of its own. */
async function verify(
  { clock }: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  { endpoint = record.endpoint ?? undefined }: ObservedMachine,
): Promise<void> {
  const { id: instanceId, offerId, region } = record;
  const now = clock.now();
  await tx.claims.take({ instanceId, offerId, region, capacity: BEYOND_CAPACITY });
  await amend(tx, record, now, {
    endpoint: endpoint ?? null,
    hostKeyFingerprint: record.hostKeyFingerprint ?? endpoint?.hostKeyFingerprint ?? null,
    spec: { ...record.spec, cloudInit: undefined },
  });
  await putInstanceWork(tx, instanceId, 'verify', now, now + record.spec.onlineWithinMs);
}

/**
 * A create that the backup held, and no machine: within its window it is begun anew. After it the client has long
 * seen what became of it, and a machine that nobody waits for is not made.
 */
async function begin(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  deadlineAt: number | null,
): Promise<void> {
  const now = context.clock.now();
  if (deadlineAt === null || now < deadlineAt)
    return putInstanceWork(tx, record.id, 'create', now, deadlineAt);
  await failInstance(
    context,
    tx,
    record,
    'The records of the orchestrator were restored from a backup, and the platform has no machine of this instance.',
  );
  await putInstanceWork(tx, record.id, 'destroy', now);
}
