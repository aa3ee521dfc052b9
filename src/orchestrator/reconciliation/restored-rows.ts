import { forEachInSlices } from '../../ports/in-slices.ts';
import { amend } from '../instances/transition.ts';
import { generationOf, idOf } from '../model/attempt.ts';
import type { MarkName } from '../model/marks.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import { CREATE_IS_OPEN, DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { putInstanceWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import type { InstanceWorkKind } from '../model/work.ts';
import { confirmMachine, readMachine } from '../platform/confirm-gone.ts';
import type { Calling, ReconcileContext, Recording } from '../platform/context.ts';
import type { Listed } from '../platform/shared-listing.ts';
import { isCreateOpen } from '../platform/superseded-attempts.ts';
import { mayAppearForMs } from '../platform/visibility.ts';
import { failCreate } from '../steps/fail.ts';
import { BEYOND_CAPACITY } from './adopt-machine.ts';

/** Rows reconciled at the same time. Each may read from the platform. */
const ROWS_AT_ONCE = 16;

/**
 * Reconciles restored rows and their work with the current machines. Operations from before the backup have ended, so
 * their cookies and deadlines are void. A row stays on hold while its machine is neither listed nor proved gone. Rows
 * that changed after `since` are not from the backup.
 */
export async function reconcileMachines(
  context: ReconcileContext,
  shown: Listed<ObservedMachine>,
  since: number,
  isStopped: () => boolean,
): Promise<void> {
  const { restoreHold, store, log } = context;
  if (restoreHold.instances.size === 0) return;
  const rows = await store.read.instances.list({});
  const live = new Set(rows.map(({ id }) => id));
  for (const id of [...restoreHold.instances]) if (!live.has(id)) restoreHold.instances.delete(id);
  const later = laterAttempts(shown);
  const held = rows.filter(({ id }) => restoreHold.instances.has(id));
  await forEachInSlices(held, { atOnce: ROWS_AT_ONCE, isStopped }, async (row) => {
    const hasLater = (later.get(row.id) ?? 0) > generationOf(row.ownerRef);
    if (hasLater && (await isCreateOpen(store.read, row.id))) return;
    const isReconciled = await reconcileRow(context, row, shown, since).catch((error) => {
      log.error({ err: error, ...instanceLogNames(row) }, 'a row could not be reconciled with its machine');
      return false;
    });
    if (isReconciled) restoreHold.instances.delete(row.id);
  });
}

/** The newest attempt that the platform shows of each resource. Its row waits for it before anything else is made. */
function laterAttempts({ items }: Listed<ObservedMachine>): Map<string, number> {
  const newest = new Map<string, number>();
  for (const ref of items.keys())
    if (generationOf(ref) > (newest.get(idOf(ref)) ?? 0)) newest.set(idOf(ref), generationOf(ref));
  return newest;
}

/** Reconciles one row. Returns false if the state of its machine is unknown. */
async function reconcileRow(
  context: Recording & Calling,
  row: InstanceRecord,
  { items, isComplete }: Listed<ObservedMachine>,
  since: number,
): Promise<boolean> {
  const { id, status, createOpenUntil } = row;
  let machine = items.get(row.ownerRef);
  let mayStillAppear = false;
  if (machine === undefined && (status === 'PROVISIONING' || status === 'STOPPED')) {
    // A listing may omit an existing machine, so the machine itself is read.
    const observedAt = context.clock.now();
    const found = await (isComplete ? confirmMachine(context, row) : readMachine(context, row));
    if (found.answer === 'unknown') return false;
    if (found.answer === 'observed') machine = found.value;
    // All calls for it after the backup were sent before this process started.
    const openUntil = createOpenUntil === null ? null : Math.min(createOpenUntil, since);
    mayStillAppear = mayAppearForMs(context, openUntil, observedAt) > 0;
  }
  if (machine === undefined && !isComplete) return false;
  return context.store.transact(async (tx) => {
    // The platform may have become untrusted since the proof.
    if (machine === undefined && !context.health.isUp) return false;
    const record = await tx.instances.byId(id);
    if (record === null || record.updatedAt >= since) return true;
    return reconcile(context, tx, record, { machine, mayStillAppear });
  });
}

/** Updates the row and its work. Returns false if no conclusion is possible yet. */
async function reconcile(
  context: Recording,
  tx: Transaction,
  record: InstanceRecord,
  { machine, mayStillAppear }: { machine: ObservedMachine | undefined; mayStillAppear: boolean },
): Promise<boolean> {
  const work = await tx.work.of(record.id);
  const isUp = machine?.power === 'running' || machine?.power === 'starting';
  const isCreating = record.status === 'PROVISIONING' && work?.kind === 'create';
  // A running machine of a STOPPED row was started after the backup. After the SSH proof it is ONLINE again.
  if (machine !== undefined && (isCreating || (record.status === 'STOPPED' && isUp))) {
    await verify(context, tx, record, machine);
    return true;
  }
  if (isCreating) return begin(context, tx, record, { deadlineAt: work.deadlineAt, mayStillAppear });
  if (work === null) return true;
  const now = context.clock.now();
  const hasWindow = work.deadlineAt !== null && work.kind !== 'hold';
  const deadlineAt = hasWindow ? now + record.spec.onlineWithinMs : work.deadlineAt;
  await putInstanceWork(tx, record.id, work.kind as InstanceWorkKind, now, deadlineAt);
  return true;
}

/** Puts the SSH proof with a window of its own, since the machine exists. */
async function verify(
  { clock }: Recording,
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
    createOpenUntil: null,
  });
  await putInstanceWork(tx, instanceId, 'verify', now, now + record.spec.onlineWithinMs);
}

/**
 * Handles a create from the backup without a machine. Within its window it starts again. After the window no machine is
 * made, since the client saw the outcome long ago.
 */
async function begin(
  context: Recording,
  tx: Transaction,
  record: InstanceRecord,
  { deadlineAt, mayStillAppear }: { deadlineAt: number | null; mayStillAppear: boolean },
): Promise<boolean> {
  const now = context.clock.now();
  if (deadlineAt === null || now < deadlineAt) {
    await amend(tx, record, now, { createOpenUntil: CREATE_IS_OPEN });
    await putInstanceWork(tx, record.id, 'create', now, deadlineAt);
    return true;
  }
  if (mayStillAppear) return false;
  await failCreate(
    context,
    tx,
    record,
    'machine_gone',
    'the database was restored from a backup, and the platform has no machine of it',
  );
  await putInstanceWork(tx, record.id, 'destroy', now);
  return true;
}

// A restore writes one mark, `restored_from`. Each platform ends the restore on its own, so with several platforms each
// gets its own mark. `default` uses either mark.

function marksOf(platform: string): MarkName[] {
  const own: MarkName = `restored_from:${platform}`;
  return platform === DEFAULT_PLATFORM ? [own, 'restored_from'] : [own];
}

/**
 * Gives each of several platforms its own mark. A repeated call after a crash does not restart a restore that has
 * ended.
 */
export async function shareRestore(
  { transact }: Pick<Store, 'transact'>,
  platforms: readonly string[],
): Promise<void> {
  if (platforms.length === 1 && platforms[0] === DEFAULT_PLATFORM) return;
  await transact(async ({ marks }) => {
    const takenAt = await marks.remove('restored_from');
    if (takenAt === null) return;
    for (const platform of platforms) await marks.put(`restored_from:${platform}`, takenAt);
  });
}

type Deps = Pick<ReconcileContext, 'store' | 'platform'>;

/**
 * When the backup of the platform's rows was taken, in milliseconds since the epoch. Null if no restore is in progress.
 */
export async function restoredFrom({ store, platform }: Deps): Promise<number | null> {
  for (const name of marksOf(platform)) {
    const takenAt = await store.read.marks.get(name);
    if (takenAt !== null) return takenAt;
  }
  return null;
}

/** Records that the platform's rows are reconciled. Returns whether this process was the first to do so. */
export async function endRestore({ store, platform }: Deps): Promise<boolean> {
  return store.transact(async ({ marks }) => {
    const removed = [];
    for (const name of marksOf(platform)) removed.push(await marks.remove(name));
    return removed.some((takenAt) => takenAt !== null);
  });
}
