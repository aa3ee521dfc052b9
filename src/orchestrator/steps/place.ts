import { cordonedHosts, standingCordons } from '../capacity/cordons.ts';
import { amend } from '../instances/transition.ts';
import { generationOf, refOf } from '../model/attempt.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import type {
  MachineSpec,
  OwnerRef,
  Placement,
  Placing,
  PlatformDriver,
  Step,
  VolumeSpec,
} from '../model/platform-driver.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import {
  type InstanceRecord,
  instanceLogNames,
  type VolumeRecord,
  volumeLogNames,
} from '../model/records.ts';
import { markOf, type Reader, type Transaction } from '../model/store.ts';
import type { ResourceKind } from '../model/work.ts';
import { askWhere } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { supersede } from '../platform/superseded-attempts.ts';
import type { Next } from './settle.ts';

type Refused = Extract<Step<never>, { outcome: 'failed' }>;

/** The last placement of each driver in this process. */
const placements = new WeakMap<PlatformDriver, Promise<unknown>>();

/**
 * Runs placements one at a time, each with its first call, so that each counts the machine of the one before and hosts fill by
 * the driver's policy. The next one waits no longer than a call may take.
 */
export async function alone<T>(
  { driver, clock, options }: Pick<ReconcileContext, 'driver' | 'clock' | 'options'>,
  place: () => Promise<T>,
): Promise<T> {
  const before = placements.get(driver);
  const { promise: over, resolve } = Promise.withResolvers<void>();
  placements.set(driver, over);
  await before;
  const timer = clock.setTimer(options.callTimeoutMs, resolve);
  try {
    return await place();
  } finally {
    timer.cancel();
    resolve();
  }
}

/** The most creates that are counted on one host: no host has more at once. */
const MAX_OPEN = 1_000;

/**
 * Chooses the host of an instance's newest attempt and stores it: the row, not the driver, decides where a machine is made. Two
 * servers that choose at once see each other's choice.
 */
export async function placeInstance(
  context: ReconcileContext,
  record: InstanceRecord,
  spec: MachineSpec,
): Promise<InstanceRecord | Refused> {
  const { driver, store, clock, platform } = context;
  const boundTo = driver.volumes?.copy === undefined ? await hostOfVolumes(store.read, record.id) : undefined;
  const avoid = await avoidedHosts(context, store.read, record.id);
  const wanted = boundTo === undefined ? spec : { ...spec, host: boundTo };
  const placing = await askWhere(context, async () => driver.place?.(wanted, avoid) ?? NOWHERE);
  if (placing.answer !== 'placed') return notPlaced(placing);
  return store.transact(async (tx): Promise<InstanceRecord | Refused> => {
    const current = await lockForPlacing(tx, platform, () => tx.instances.byId(record.id));
    if (current === null || current.host !== null || current.ownerRef !== record.ownerRef) return CHANGED;
    const open = (host: string) =>
      tx.instances.search({ platform, host, status: 'PROVISIONING', order: 'oldest', limit: MAX_OPEN });
    const host = await firstWithRoom(context, tx, placing.hosts, record.id, open);
    if (host === undefined) return CONFLICT;
    return amend(tx, current, clock.now(), { host });
  });
}

/** {@link placeInstance}, for a volume. */
export async function placeVolume(
  context: ReconcileContext,
  record: VolumeRecord,
  spec: VolumeSpec,
): Promise<VolumeRecord | Refused> {
  const { driver, store, platform } = context;
  const avoid = await avoidedHosts(context, store.read, record.id);
  const placing = await askWhere(context, async () => driver.volumes?.place?.(spec, avoid) ?? NOWHERE);
  if (placing.answer !== 'placed') return notPlaced(placing);
  return store.transact(async (tx): Promise<VolumeRecord | Refused> => {
    const current = await lockForPlacing(tx, platform, () => tx.volumes.byId(record.id));
    if (current === null || current.host !== null || current.ownerRef !== record.ownerRef) return CHANGED;
    const host = await firstWithRoom(context, tx, placing.hosts, record.id, async () => []);
    if (host === undefined) return CONFLICT;
    const placed = { ...current, host };
    await tx.volumes.update(placed);
    return placed;
  });
}

const NOWHERE: Placing = { answer: 'refused', code: 'capacity', detail: 'the driver places on no host' };
const CHANGED = conflict('the row changed while a host was chosen');
const CONFLICT = conflict('the hosts that had room were taken by other creates meanwhile');

function conflict(detail: string): Refused {
  return { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail };
}

function notPlaced(placing: Exclude<Placing, { answer: 'placed' }>): Refused {
  if (placing.answer === 'unknown')
    return { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: placing.reason };
  return { outcome: 'failed', code: placing.code, sideEffect: 'none', detail: placing.detail };
}

/** Reads the row under a lock: one choice of a host at a time on a platform, over all servers. */
async function lockForPlacing<T>(tx: Transaction, platform: string, read: () => Promise<T>): Promise<T> {
  const row = await read();
  await tx.marks.get(markOf(platform, 'placing'));
  return row;
}

/** Cordoned hosts, and those on which an earlier attempt failed. */
async function avoidedHosts(
  { clock, platform }: ReconcileContext,
  read: Pick<Reader, 'cordons' | 'attempts'>,
  resourceId: string,
): Promise<string[]> {
  const cordoned = cordonedHosts(await standingCordons(read, clock.now()), platform);
  const tried = (await read.attempts.of(resourceId)).flatMap(({ host, destroyOrder }) =>
    host === null || destroyOrder.reason === 'moved' ? [] : [host],
  );
  return [...new Set([...cordoned, ...tried])];
}

/** The first host with room: the platform's count less the creates that it does not count yet, without cordoned hosts. */
async function firstWithRoom(
  context: ReconcileContext,
  tx: Transaction,
  hosts: readonly Placement[],
  resourceId: string,
  openOn: (host: string) => Promise<readonly { ownerRef: OwnerRef }[]>,
): Promise<string | undefined> {
  const avoided = await avoidedHosts(context, tx, resourceId);
  for (const { host, units, counted } of hosts) {
    if (avoided.includes(host)) continue;
    const known = new Set(counted);
    const uncounted = (await openOn(host)).filter(({ ownerRef }) => !known.has(ownerRef));
    if (units > uncounted.length) return host;
  }
  return undefined;
}

/** The host of the instance's volumes: a machine is made there if volumes are on hosts and cannot be moved. */
async function hostOfVolumes(
  { volumes }: Pick<Reader, 'volumes'>,
  instanceId: string,
): Promise<string | undefined> {
  for (const { volumeId } of await volumes.attachmentsOfInstance(instanceId)) {
    const host = (await volumes.byId(volumeId))?.host;
    if (host !== null && host !== undefined) return host;
  }
  return undefined;
}

const ANOTHER = 'an attempt to make it is over without success: another one begins under another name';
/** Nothing was sent under the new name, so no earlier create is searched for. */
export const NEXT_ATTEMPT: Next = { step: 'again', afterMs: 0, attempt: 0 };

/** What the newest attempt left. `nothing`: it is closed at once · `something`: work of its own removes it. */
type Left = 'nothing' | 'something';

/**
 * Opens the next attempt of an instance, under a name of its own. What the attempt before left is removed.
 */
export async function openNextAttempt(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  left: Left,
  reason: string,
): Promise<InstanceRecord> {
  const now = context.clock.now();
  const ownerRef = await closeNewest(context, tx, record, 'instance', left);
  context.log.warn({ ...instanceLogNames(record), host: record.host, reason, ref: ownerRef }, ANOTHER);
  return amend(tx, record, now, { ownerRef, host: null, createOpenUntil: CREATE_IS_OPEN });
}

/** {@link openNextAttempt}, for a volume that is being made. */
export async function openNextVolumeAttempt(
  context: ReconcileContext,
  tx: Transaction,
  record: VolumeRecord,
  left: Left,
  reason: string,
): Promise<VolumeRecord> {
  const ownerRef = await closeNewest(context, tx, record, 'volume', left);
  context.log.warn({ ...volumeLogNames(record), host: record.host, reason, ref: ownerRef }, ANOTHER);
  const next = { ...record, ownerRef, host: null, createOpenUntil: CREATE_IS_OPEN };
  await tx.volumes.update(next);
  return next;
}

async function closeNewest(
  { clock, alarms, platform }: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord | VolumeRecord,
  resourceKind: ResourceKind,
  left: Left,
): Promise<OwnerRef> {
  const { id: resourceId, ownerRef: ref, host, createdAt: openedAt } = record;
  const now = clock.now();
  const destroyOrder = recordedOrder({ reason: 'failed_create', by: alarms.server, at: now });
  const attempt = { resourceId, resourceKind, platform, ref, host, openedAt, destroyOrder };
  if (left === 'nothing') await tx.attempts.put({ ...attempt, closedAt: now });
  else await supersede(tx, { ...record, resourceKind }, alarms.server, now);
  return nextRefOf(tx, record);
}

/** The name of the next attempt: no attempt of the resource has had it. */
export async function nextRefOf(
  { attempts }: Pick<Reader, 'attempts'>,
  { id, ownerRef }: { id: string; ownerRef: OwnerRef },
): Promise<OwnerRef> {
  const used = (await attempts.of(id)).map(({ ref }) => generationOf(ref));
  return refOf(id, Math.max(generationOf(ownerRef), ...used) + 1);
}
