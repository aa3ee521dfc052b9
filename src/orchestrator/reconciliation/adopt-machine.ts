import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { isAccountId } from '../accounts/accounts.ts';
import { fromNote, instanceNoteSchema, type NotedInstance } from '../instances/note.ts';
import { amend } from '../instances/transition.ts';
import { markOf } from '../model/marks.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { putInstanceWork } from '../model/rows.ts';
import type { Transaction } from '../model/store.ts';
import type { InstanceWorkKind, ResourceKind } from '../model/work.ts';
import { callOnce } from '../platform/call-platform.ts';
import type { Calling, ReconcileContext, Recording } from '../platform/context.ts';
import { proveEndpoint } from '../steps/instance/verify.ts';
import { type Adopted, auditByServer, type OrphanOutcome } from './without-row.ts';

/** The problem text for a note whose account is not in the database, with the command that creates the account. */
function noAccount(id: string): string {
  const remedy = isAccountId(id) ? `: make it with \`berth accounts create <name> --id ${id}\`` : '';
  return `there is no account ${id}${remedy}`;
}

/** Claims of existing machines have no limit: their unit is taken even if none is free. */
export const BEYOND_CAPACITY = Number.MAX_SAFE_INTEGER;

/**
 * Restores the lost row of a machine from its note, such as after the restore of an older backup. Runs in one
 * transaction, and inserts the row only once, even if several processes try.
 */
export async function adoptMachine(context: ReconcileContext, machine: ObservedMachine): Promise<Adopted> {
  const noted = readOwnNote(context, machine, instanceNoteSchema);
  if (!('id' in noted)) return noted.adopted;
  const placement = { offerId: noted.offerId, region: noted.region };
  const problem = await whyNotAdoptable(context, 'instance', noted);
  if (problem !== undefined) return { problem, placement, isWhole: true };
  await insertAdopted(context, machine, noted, async (tx) => (await tx.instances.byId(noted.id)) === null);
  return 'adopted';
}

/**
 * Makes a machine a new instance in its note's account, at an operator's request. The old id was answered ERROR,
 * OFFLINE or 404, which is final for clients. The machine keeps its name on the platform. The new id is derived from
 * the old one, so a repeated adoption after a restore yields the id that the client knows.
 */
export async function adoptAsNew(context: ReconcileContext, machine: ObservedMachine): Promise<Adopted> {
  const { store } = context;
  const known = readOwnNote(context, machine, instanceNoteSchema);
  if (!('id' in known)) return known.adopted;
  const idBefore = (await store.read.instances.byOwnerRef(machine.ref))?.id ?? known.id;
  const digest = createHash('sha256').update(`${machine.ref} adopted from ${idBefore}`).digest('hex');
  const noted = { ...known, id: `inst-${digest.slice(0, 32)}` };
  if ((await store.read.credentials.accountById(noted.accountId)) === null)
    return { problem: noAccount(noted.accountId), isWhole: true };
  const isInserted = await insertAdopted(context, machine, noted, async (tx) => {
    const before = await tx.instances.byOwnerRef(machine.ref);
    if (before !== null && !isAbandoned(before)) return false;
    if (before !== null) await giveUpName(tx, before, context.clock.now());
    return true;
  });
  return isInserted ? 'adopted' : { problem: 'a live instance has it', isWhole: true };
}

/** Whether an instance ended without a request, so that its machine may be adopted. */
function isAbandoned({ status, destroyOrder }: InstanceRecord): boolean {
  return (status === 'ERROR' || status === 'OFFLINE') && destroyOrder === null;
}

/** Detaches an ended instance from its machine, so that another instance can get the machine. */
async function giveUpName(tx: Transaction, record: InstanceRecord, now: number): Promise<void> {
  await amend(tx, record, now, { ownerRef: `given-up-${record.id}` });
  await tx.claims.release(record.id);
  await putInstanceWork(tx, record.id, 'release', now);
}

async function insertAdopted(
  context: ReconcileContext,
  machine: ObservedMachine,
  noted: NotedInstance,
  mayInsert: (tx: Transaction) => Promise<boolean>,
): Promise<boolean> {
  const { store, platform, log } = context;
  const plan = await planAdoption(context, machine, noted);
  return store.transact(async (tx) => {
    if (!(await mayInsert(tx))) return false;
    const record = fromNote({ platform, ref: machine.ref }, noted, {
      status: plan.status,
      endpoint: machine.endpoint ?? null,
      hostKeyFingerprint: plan.hostKeyFingerprint,
      now: context.clock.now(),
    });
    await tx.instances.insert({ ...record, host: machine.host ?? null });
    await auditByServer(context, tx, { action: 'instance.adopt', subject: record.id, ref: machine.ref });
    const { id: instanceId, offerId, region } = record;
    if (plan.work !== undefined || plan.status !== 'STOPPED' || record.spec.onStop === 'hold')
      await tx.claims.take({ instanceId, offerId, region, capacity: BEYOND_CAPACITY });
    if (plan.work !== undefined)
      await putInstanceWork(tx, record.id, plan.work, context.clock.now(), plan.deadlineAt);
    log.warn(
      { ...instanceLogNames(record), status: record.status, power: machine.power },
      `the row of a machine was restored from its note: ${context.sightings.whyRowIsMissing}`,
    );
    return true;
  });
}

interface Plan {
  status: InstanceRecord['status'];
  hostKeyFingerprint: string | null;
  work?: InstanceWorkKind;
  deadlineAt: number | null;
}

/**
 * Chooses a state for which there is proof. A running machine is first proved by SSH, so a client that saw ONLINE sees
 * it again. Without proof it is PROVISIONING: within its window like a create, later without a deadline, since it was
 * ONLINE once. A failed machine may have been ONLINE too: it ends as a loss, under the cap. A
 * machine that is being removed is not ordered to be: it ends when it is gone, or by the next DELETE.
 */
async function planAdoption(
  context: Recording & Calling,
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
    case 'paused':
      return { status: 'STOPPED', ...endless };
    case 'destroying':
      return { status: 'DESTROYING', work: 'release', ...endless };
  }
}

/** The row was either deleted as a tombstone or lost. Only an operator can decide which. */
const PRUNED =
  'its row may have been pruned, so it is unknown whether its instance or volume had ended: inspect it ' +
  'on the platform, then adopt, release or destroy it';

/** Reads the note of a resource. `adopted`: the outcome, if no note of this installation can be read. */
export function readOwnNote<T extends { id: string }>(
  { installationId, otherPlatforms }: Pick<Calling, 'installationId' | 'otherPlatforms'>,
  resource: Parameters<typeof readNote>[0],
  schema: z.ZodType<T>,
): T | { adopted: Adopted } {
  const reading = readNote(resource, installationId, schema, otherPlatforms);
  if (reading.owner === 'ours') return reading.value;
  if (reading.owner === 'foreign') return { adopted: 'foreign' };
  return { adopted: { problem: 'its note cannot be read', isWhole: false } };
}

/**
 * Why the row of a resource cannot be restored from its note: its account is missing, or the row may have been pruned.
 * The mark is the latest creation time of a pruned row, written together with its deletion.
 */
export async function whyNotAdoptable(
  { store: { read }, platform }: Pick<Recording, 'store' | 'platform'>,
  kind: ResourceKind,
  { accountId, createdAt }: { accountId: string; createdAt: number },
): Promise<string | undefined> {
  if ((await read.credentials.accountById(accountId)) === null) return noAccount(accountId);
  const until = await read.marks.get(markOf(platform, `${kind}s_pruned_until`));
  return until !== null && createdAt <= until ? PRUNED : undefined;
}

/** Removes Berth's mark from a machine without an instance. From then on it belongs to the operator. */
export async function releaseMachine(
  context: Pick<ReconcileContext, 'driver' | 'clock' | 'options'>,
  { ref }: ObservedMachine,
): Promise<OrphanOutcome> {
  const { driver } = context;
  const { disown } = driver;
  if (disown === undefined)
    return { problem: 'its driver cannot remove the tag: remove it on the platform', isWhole: true };
  const step = await callOnce(context, (limits) => disown.call(driver, ref, null, limits));
  if (step.outcome === 'done') return 'released';
  if (step.outcome === 'pending' || step.code === 'transient') return 'unknown';
  return step.code === 'gone' ? 'gone' : { problem: `${step.code}: ${step.detail}`, isWhole: true };
}
