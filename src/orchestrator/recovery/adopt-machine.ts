import { isAccountId } from '../accounts/accounts.ts';
import { fromNote, instanceNoteSchema, type NotedInstance } from '../instances/note.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { putInstanceWork } from '../model/rows.ts';
import type { InstanceWorkKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { UnadoptedResource } from '../platform/not-found-guard.ts';
import { destroyPruned, wasPruned } from '../platform/pruned.ts';
import { proveEndpoint } from '../steps/prove-endpoint.ts';

/** What became of a listed resource without a row. */
export type Adopted = 'adopted' | 'foreign' | (Omit<UnadoptedResource, 'ref'> & { problem: string });

/** What the operator does about it: the account that a note names, and that is younger than the backup. */
export function noAccount(id: string): string {
  const remedy = isAccountId(id) ? `: make it with \`berth accounts create <name> --id ${id}\`` : '';
  return `there is no account ${id}${remedy}`;
}

/** A machine that exists is claimed even if its placement is full. */
export const BEYOND_CAPACITY = Number.MAX_SAFE_INTEGER;

/**
 * Writes the row of a machine that has none again, from the note that it was made with: the database was restored
 * from a backup that is older than the machine. All in one transaction, and once, however many processes try. A machine
 * whose tombstone was pruned is destroyed again.
 */
export async function adoptMachine(context: ReconcileContext, machine: ObservedMachine): Promise<Adopted> {
  const { store, platform, otherPlatforms, log, installationId } = context;
  const reading = readNote(machine, installationId, instanceNoteSchema, otherPlatforms);
  if (reading.owner === 'foreign') return 'foreign';
  if (reading.owner === 'unknown') return { problem: 'its note cannot be read' };
  const noted = reading.value;
  if ((await store.read.credentials.accountById(noted.accountId)) === null)
    return {
      problem: noAccount(noted.accountId),
      placement: { offerId: noted.offerId, region: noted.region },
    };
  if (await wasPruned(context, 'instance', noted)) {
    await destroyPruned(context, machine.ref, noted);
    return 'adopted';
  }
  const plan = await planAdoption(context, machine, noted);
  await store.transact(async (tx) => {
    if ((await tx.instances.byId(noted.id)) !== null) return;
    const record = fromNote({ platform, ref: machine.ref }, noted, {
      status: plan.status,
      endpoint: machine.endpoint ?? null,
      hostKeyFingerprint: plan.hostKeyFingerprint,
      now: context.clock.now(),
    });
    await tx.instances.insert(record);
    const { id: instanceId, offerId, region } = record;
    if (plan.work !== undefined || plan.status !== 'STOPPED' || record.spec.onStop === 'hold')
      await tx.claims.take({ instanceId, offerId, region, capacity: BEYOND_CAPACITY });
    if (plan.work !== undefined)
      await putInstanceWork(tx, record.id, plan.work, context.clock.now(), plan.deadlineAt);
    log.warn(
      { ...instanceLogNames(record), status: record.status, power: machine.power },
      'a machine that is younger than the backup has its row again, from its note',
    );
  });
  return 'adopted';
}

interface Plan {
  status: InstanceRecord['status'];
  hostKeyFingerprint: string | null;
  work?: InstanceWorkKind;
  deadlineAt: number | null;
}

/**
 * Writes no state without proof. A running machine is proved by SSH first, so that a client that saw ONLINE sees it
 * again. Without the proof it starts as PROVISIONING: within its window like any create, later without a deadline,
 * since it was ONLINE once and must not be removed because its guest blocks SSH now. A failed machine may have been
 * ONLINE too: it ends as a loss, under the cap.
 */
async function planAdoption(
  context: ReconcileContext,
  machine: ObservedMachine,
  { spec, createdAt }: NotedInstance,
): Promise<Plan> {
  const now = context.clock.now();
  const hostKeyFingerprint = machine.endpoint?.hostKeyFingerprint ?? null;
  const window = { hostKeyFingerprint, deadlineAt: now + spec.onlineWithinMs };
  const endless = { hostKeyFingerprint, deadlineAt: null };
  switch (machine.power) {
    case 'running': {
      const { endpoint } = machine;
      const proof =
        endpoint && (await proveEndpoint(context, endpoint, spec.sshKeys, endpoint.hostKeyFingerprint));
      if (proof?.ok)
        return { status: 'ONLINE', hostKeyFingerprint: proof.hostKeyFingerprint, deadlineAt: null };
      const isYoung = now - createdAt < spec.onlineWithinMs;
      return { status: 'PROVISIONING', work: 'verify', ...(isYoung ? window : endless) };
    }
    case 'failed':
      return { status: 'PROVISIONING', work: 'verify', ...endless };
    case 'building':
      return { status: 'PROVISIONING', work: 'verify', ...window };
    case 'starting':
      return { status: 'STOPPED', work: 'verify', ...window };
    case 'stopping':
      return { status: 'STOPPING', work: 'stop', ...endless };
    case 'stopped':
      return { status: 'STOPPED', ...endless };
    case 'destroying':
      return { status: 'DESTROYING', work: 'destroy', ...endless };
  }
}
