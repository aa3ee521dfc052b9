import { activeCordons, cordonedHosts, takeTrial } from '../capacity/cordons.ts';
import { amend } from '../instances/transition.ts';
import { type Attempt, generationOf, refOf } from '../model/attempt.ts';
import { type CordonRecord, isTrialDue } from '../model/cordon.ts';
import { markOf } from '../model/marks.ts';
import type {
  MachineSpec,
  OwnerRef,
  Placement,
  Placing,
  Step,
  VolumeSpec,
} from '../model/platform-driver.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import type { InstanceRecord, VolumeRecord } from '../model/records.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { Lease, ResourceKind } from '../model/work.ts';
import { askWhere } from '../platform/call-platform.ts';
import type { Calling, Recording } from '../platform/context.ts';
import { supersede } from '../platform/superseded-attempts.ts';
import { isRefused } from './adopt-or-create.ts';
import type { StepContext } from './context.ts';
import { describeFailure, type Failed, retry } from './fail.ts';
import type { Next } from './settle.ts';

type Refused = Extract<Step<never>, { outcome: 'failed' }>;

/**
 * Runs the placements of a platform one at a time, each with its first call. So each placement sees the machine of the
 * previous one, and hosts fill by the driver's policy. The next placement waits at most the call timeout.
 */
export async function alone<T>(
  { placements, clock, options }: Pick<StepContext, 'placements' | 'clock' | 'options'>,
  place: () => Promise<T>,
): Promise<T> {
  const before = placements.last;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  placements.last = over;
  await before;
  const timer = clock.setTimer(options.callTimeoutMs, resolve);
  try {
    return await place();
  } finally {
    timer.cancel();
    resolve();
  }
}

/** The limit of open creates counted on one host. No host has more at once. */
const MAX_OPEN = 1_000;

/**
 * Chooses and stores the host of an instance's newest attempt: the row, not the driver, decides where a machine is
 * made. Concurrent choices of two servers see each other.
 */
export async function placeInstance(
  context: Recording & Calling,
  record: InstanceRecord,
  spec: MachineSpec,
): Promise<InstanceRecord | Refused> {
  const { driver, store, clock, platform } = context;
  const boundTo = driver.volumes?.copy === undefined ? await hostOfVolumes(store.read, record.id) : undefined;
  const cordons = await activeCordons(store.read, clock.now());
  const { hosts: avoid, isClearing } = await avoidedHosts(context, store.read, record.id, cordons);
  const wanted = boundTo === undefined ? spec : { ...spec, host: boundTo };
  const placing = await askWhere(context, async () => driver.place?.(wanted, avoid) ?? NOWHERE);
  if (placing.answer !== 'placed') {
    const isFull = placing.answer === 'refused' && placing.code === 'capacity';
    if (isFull && isClearing) return CLEARING;
    return isFull && cordons.some((cordon) => isTried(cordon, platform)) ? TRIED : notPlaced(placing);
  }
  return store.transact(async (tx): Promise<InstanceRecord | Refused> => {
    const current = await lockForPlacing(tx, platform, () => tx.instances.byId(record.id));
    if (current === null || current.host !== null || current.ownerRef !== record.ownerRef) return CHANGED;
    const open = (host: string) =>
      tx.instances.search({ platform, host, status: 'PROVISIONING', order: 'oldest', limit: MAX_OPEN });
    const now = clock.now();
    const all = await tx.cordons.list();
    const isDue = ({ host }: Placement): boolean =>
      all.some(
        (one) =>
          one.kind === 'host' && one.name === host && one.platform === platform && isTrialDue(one, now),
      );
    const hosts = [...placing.hosts.filter(isDue), ...placing.hosts.filter((one) => !isDue(one))];
    const avoided = await avoidedHosts(context, tx, record.id, await activeCordons(tx, now));
    const host = await firstWithRoom(hosts, avoided.hosts, open);
    if (host === undefined) return CONFLICT;
    await takeTrial(tx, { kind: 'host', name: host, platform }, record.id, now);
    return amend(tx, current, now, { host });
  });
}

/** Like {@link placeInstance}, for a volume. */
export async function placeVolume(
  context: Recording & Calling,
  record: VolumeRecord,
  spec: VolumeSpec,
): Promise<VolumeRecord | Refused> {
  const { driver, store, platform } = context;
  const cordons = await cordonsOfVolumes(context, store.read);
  const { hosts: avoid, isClearing } = await avoidedHosts(context, store.read, record.id, cordons);
  const placing = await askWhere(context, async () => driver.volumes?.place?.(spec, avoid) ?? NOWHERE);
  if (placing.answer !== 'placed')
    return isClearing && placing.answer === 'refused' ? CLEARING : notPlaced(placing);
  return store.transact(async (tx): Promise<VolumeRecord | Refused> => {
    const current = await lockForPlacing(tx, platform, () => tx.volumes.byId(record.id));
    if (current === null || current.host !== null || current.ownerRef !== record.ownerRef) return CHANGED;
    const avoided = await avoidedHosts(context, tx, record.id, await cordonsOfVolumes(context, tx));
    const host = await firstWithRoom(placing.hosts, avoided.hosts, async () => []);
    if (host === undefined) return CONFLICT;
    const placed = { ...current, host };
    await tx.volumes.update(placed);
    return placed;
  });
}

const NOWHERE: Placing = { answer: 'refused', code: 'capacity', detail: 'the driver places on no host' };
const CHANGED = conflict('the row changed while a host was chosen');
const TRIED = conflict('a create is tried on a host that refused others: it waits for the outcome');
const CLEARING = conflict(
  'what its interrupted attempt left on the host is being removed; then it is tried again',
);
const CONFLICT = conflict('other creates have meanwhile taken the hosts that had room');

function conflict(detail: string): Refused {
  return { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail };
}

function notPlaced(placing: Exclude<Placing, { answer: 'placed' }>): Refused {
  if (placing.answer === 'unknown')
    return { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: placing.reason };
  return { outcome: 'failed', code: placing.code, sideEffect: 'none', detail: placing.detail };
}

/** Reads the row under a lock that serializes the choice of hosts on a platform across all servers. */
async function lockForPlacing<T>(tx: Transaction, platform: string, read: () => Promise<T>): Promise<T> {
  const row = await read();
  await tx.marks.get(markOf(platform, 'placing'));
  return row;
}

/** Whether the outcome of a trial on a host is open. */
function isTried({ kind, platform: of, refusals }: CordonRecord, platform: string): boolean {
  return kind === 'host' && of === platform && typeof refusals?.trial === 'string';
}

/** The operator's cordons. That a host refuses machines does not prove that it refuses volumes. */
async function cordonsOfVolumes(
  { clock }: Recording,
  read: Pick<Reader, 'cordons'>,
): Promise<CordonRecord[]> {
  return (await activeCordons(read, clock.now())).filter(({ refusals }) => refusals === null);
}

/**
 * Cordoned hosts, and hosts of failed attempts. Where one attempt was interrupted, the host may be the only one: it can
 * have a second one once nothing of the first is left. `isClearing`: a host is not there yet.
 */
async function avoidedHosts(
  { platform }: Recording,
  read: Pick<Reader, 'attempts'>,
  resourceId: string,
  cordons: readonly CordonRecord[],
): Promise<{ hosts: string[]; isClearing: boolean }> {
  const attempts = await read.attempts.of(resourceId);
  const tried = attempts.filter(({ destroyOrder }) => destroyOrder.reason !== 'moved');
  const isOnlyOne = ({ host }: Attempt) => tried.filter((other) => other.host === host).length === 1;
  const wasRefused = ({ closedAt, destroyOrder }: Attempt) => closedAt === destroyOrder.at;
  const isOver = (one: Attempt) => one.closedAt !== null && !wasRefused(one) && isOnlyOne(one);
  const avoided = tried.flatMap((one) => (one.host === null || isOver(one) ? [] : [one.host]));
  return {
    hosts: [...new Set([...cordonedHosts(cordons, platform), ...avoided])],
    isClearing: tried.some((one) => one.host !== null && one.closedAt === null && isOnlyOne(one)),
  };
}

/** The first host with room. Room is the platform's count minus the creates that it does not count yet. */
async function firstWithRoom(
  hosts: readonly Placement[],
  avoided: readonly string[],
  openOn: (host: string) => Promise<readonly { ownerRef: OwnerRef }[]>,
): Promise<string | undefined> {
  for (const { host, units, counted } of hosts) {
    if (avoided.includes(host)) continue;
    const known = new Set(counted);
    const uncounted = (await openOn(host)).filter(({ ownerRef }) => !known.has(ownerRef));
    if (units > uncounted.length) return host;
  }
  return undefined;
}

/** The host of the instance's volumes. The machine must be made there if volumes are on hosts and cannot be moved. */
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

const ANOTHER = 'an attempt to create it failed: the next one starts under another name';
/** Nothing was sent under the new name, so no wait for an earlier create is needed. */
const NEXT_ATTEMPT = { attempt: 0, progress: null };

/** The parts that differ between the kinds of resources. */
interface Opening {
  resourceKind: ResourceKind;
  /** Whether the driver implements `place`. */
  places: boolean;
  names: object;
  write(row: { ownerRef: OwnerRef; host: null; createOpenUntil: number }): Promise<unknown>;
}

/**
 * Opens the next attempt under a new name, if the newest left something that cannot be completed (other work removes
 * it), or was refused without effect and another host may accept it. Otherwise returns undefined.
 */
export async function openNextAttempt(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord | VolumeRecord,
  failed: Failed,
  { resourceKind, places, names, write }: Opening,
): Promise<Next | undefined> {
  const { clock, alarms, log } = context;
  const { host } = record;
  const isRefusedThere = isRefused(failed) && failed.sideEffect === 'none' && lease.cookie === null;
  // A quota is of the whole platform.
  const isEmpty = isRefusedThere && failed.code !== 'quota' && host !== null && places;
  if (failed.code !== 'unfinished' && !isEmpty) return undefined;
  const now = clock.now();
  const attempt = { ...record, resourceKind, ...(isEmpty && { closedAt: now }) };
  await supersede(tx, attempt, alarms.server, now);
  const ownerRef = await nextRefOf(tx, record);
  log.warn({ ...names, host, reason: describeFailure(failed), ref: ownerRef }, ANOTHER);
  await write({ ownerRef, host: null, createOpenUntil: CREATE_IS_OPEN });
  if (isEmpty) return { step: 'again', afterMs: 0, ...NEXT_ATTEMPT };
  const attempts = { ...lease, attempt: generationOf(ownerRef) };
  return { ...retry(context, attempts, describeFailure(failed)), ...NEXT_ATTEMPT };
}

/** The name of the next attempt. No attempt of the resource has had it. */
export async function nextRefOf(
  { attempts }: Pick<Reader, 'attempts'>,
  { id, ownerRef }: { id: string; ownerRef: OwnerRef },
): Promise<OwnerRef> {
  const used = (await attempts.of(id)).map(({ ref }) => generationOf(ref));
  return refOf(id, Math.max(generationOf(ownerRef), ...used) + 1);
}
