import type { PlacementUse } from '../../../src/orchestrator/model/claims.ts';
import type { OwnerRef } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Attachment, InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import type { Machine } from '../platform/platform.ts';
import type { CreateSent } from '../workload/tenant.ts';

/** I1: no more units are claimed than a placement has. */
export function nothingIsOversold(
  use: readonly PlacementUse[],
  units: (offerId: string, region: string) => number,
): void {
  for (const { offerId, region, claimed } of use)
    hold(
      'I1',
      claimed <= units(offerId, region),
      () => `${claimed} units of ${offerId} in ${region} are taken`,
    );
}

/** I1: no location sells more storage than it has. */
export function noStorageIsOversold(
  use: readonly { region: string; claimedGb: number }[],
  capacityGb: (region: string) => number | undefined,
): void {
  for (const { region, claimedGb } of use)
    hold(
      'I1',
      claimedGb <= (capacityGb(region) ?? Number.POSITIVE_INFINITY),
      () => `${claimedGb} GB of ${region} are taken`,
    );
}

/** I4: a volume claims its size from its create until it is proved gone, and nothing else does. */
export function storageClaimsMatch({ id, status, sizeGb, deletedAt }: VolumeRecord, claimedGb: number): void {
  const expected = deletedAt === null && status !== 'ERROR' ? sizeGb : 0;
  hold('I4', claimedGb === expected, () => `${id} is ${status} and claims ${claimedGb} GB`, [id]);
}

/** An instance that ended without a request keeps its machine, its unit and a row of work until one comes. */
export function isKept(
  { status, destroyOrder, ownerRef }: InstanceRecord,
  refs: ReadonlySet<OwnerRef>,
): boolean {
  return (status === 'ERROR' || status === 'OFFLINE') && destroyOrder === null && refs.has(ownerRef);
}

export function refsOf(machines: readonly Pick<Machine, 'spec'>[]): ReadonlySet<OwnerRef> {
  return new Set(machines.map(({ spec }) => spec.ref));
}

const PASSING = new Set(['PROVISIONING', 'STOPPING', 'DESTROYING']);
const PASSING_VOLUME = new Set(['CREATING', 'ATTACHING', 'DETACHING', 'DELETING']);

/** I24: every intent comes to an end once no fault happens any more. `openWork`: beside that of what is kept. */
export function everyIntentEnds(
  instances: readonly InstanceRecord[],
  volumes: readonly VolumeRecord[],
  openWork: number,
): void {
  const stuck = instances.find(({ status }) => PASSING.has(status));
  hold('I24', stuck === undefined, () => `${stuck?.id} stays ${stuck?.status}`, [stuck?.id ?? '']);
  const volume = volumes.find(({ status, deletedAt }) => deletedAt === null && PASSING_VOLUME.has(status));
  hold('I24', volume === undefined, () => `${volume?.id} stays ${volume?.status}`, [volume?.id ?? '']);
  hold('I24', openWork <= 0, () => `${openWork} rows of work stay open`);
}

/** I24: what the configuration has removed after a time is removed then. */
export function noPolicyIsPending(id: string, leftMs: number): void {
  hold('I24', leftMs <= 0, () => `${id} failed, and its machine is to be kept for another ${leftMs} ms`, [
    id,
  ]);
}

const WITH_MACHINE = new Set(['ONLINE', 'STOPPED']);

/** I3: each machine has a live row, or is kept; and each live row has its machine, in the state that the row says. */
export function rowsMatchMachines(instances: readonly InstanceRecord[], machines: readonly Machine[]): void {
  const byRef = new Map(instances.map((record) => [record.ownerRef, record]));
  const refs = refsOf(machines);
  for (const { spec, power } of machines) {
    const row = byRef.get(spec.ref);
    const isOwned = row !== undefined && (WITH_MACHINE.has(row.status) || isKept(row, refs));
    hold('I3', isOwned, () => `${spec.ref} is ${power} and its row is ${row?.status ?? 'none'}`, [spec.ref]);
  }
  for (const row of instances) {
    if (!WITH_MACHINE.has(row.status)) continue;
    const own = machines.filter(({ spec }) => spec.ref === row.ownerRef);
    hold('I3', own.length === 1, () => `${row.id} is ${row.status} and has ${own.length} machines`, [row.id]);
    // A start that failed leaves its instance STOPPED, with its disk.
    const expected = row.status === 'ONLINE' ? ['running'] : ['stopped', 'failed'];
    const isAsTold = expected.includes(own[0]?.power ?? '');
    hold('I3', isAsTold, () => `${row.id} is ${row.status}, its machine ${own[0]?.power}`, [row.id]);
    const isRight = row.status !== 'ONLINE' || own[0]?.ip === row.endpoint?.publicIp;
    hold('I3', isRight, () => `${row.id} tells ${row.endpoint?.publicIp}, its machine has ${own[0]?.ip}`, [
      row.id,
    ]);
  }
}

/** I4: exactly the instances that use a unit claim one. */
export function claimsMatchRows(
  instances: readonly InstanceRecord[],
  holds: ReadonlyMap<string, boolean>,
  refs: ReadonlySet<OwnerRef>,
): void {
  for (const record of instances) {
    const { id, status, spec } = record;
    const isUsed = status === 'ONLINE' || (status === 'STOPPED' && spec.onStop === 'hold');
    const shouldHold = isUsed || isKept(record, refs);
    hold(
      'I4',
      holds.get(id) === shouldHold,
      () => `${id} is ${status} and holds ${holds.get(id) ? 'a' : 'no'} unit`,
      [id],
    );
  }
}

/** I10, I13: a create that was refused left nothing; one that was accepted made one instance. */
export function createsAreCounted(creates: Iterable<CreateSent>, rowsNamed: (name: string) => number): void {
  for (const { name, outcome, isRetried, isForgotten } of creates) {
    if (isForgotten) continue;
    const rows = rowsNamed(name);
    const invariant = isRetried ? 'I10' : 'I13';
    hold(invariant, rows <= 1, () => `${name} was created ${rows} times`, [name]);
    hold(invariant, outcome !== 'refused' || rows === 0, () => `${name} was refused, and is there`, [name]);
    hold('I9', outcome !== 'created' || rows === 1, () => `${name} was created, and is not there`, [name]);
  }
}

/** I15: a volume is attached where its rows say, and nowhere else. */
export function attachmentsMatch(
  volume: VolumeRecord,
  attachments: readonly Attachment[],
  holders: readonly string[],
): void {
  const told = attachments.map(({ instanceId }) => `berth-${instanceId}`).sort();
  const open = attachments.find(({ state }) => state !== 'attached');
  hold('I15', open === undefined, () => `${volume.id} stays ${open?.state} at ${open?.instanceId}`, [
    volume.id,
  ]);
  hold(
    'I15',
    JSON.stringify(told) === JSON.stringify([...holders].sort()),
    () =>
      `${volume.id} is told at ${told.join(', ') || 'nothing'}, and is at ${holders.join(', ') || 'nothing'}`,
    [volume.id],
  );
}

/** I15: the volume of a live row exists, with its data. */
export function volumesAreThere(volumes: readonly VolumeRecord[], refs: ReadonlySet<string>): void {
  for (const { id, ownerRef, status, deletedAt } of volumes) {
    const shouldBe = deletedAt === null && status !== 'ERROR';
    hold(
      'I15',
      refs.has(ownerRef) === shouldBe,
      () =>
        `${id} is ${deletedAt === null ? status : 'gone'}, and ${refs.has(ownerRef) ? 'exists' : 'does not exist'}`,
      [id],
    );
  }
}

/**
 * I15: a volume is as large as its row says, also after a resize that was given up: the platform may carry that out all
 * the same.
 */
export function sizeIsTrue({ id, ownerRef, status, sizeGb }: VolumeRecord, trueGb: number): void {
  if (status === 'ERROR') return;
  hold('I15', sizeGb === trueGb, () => `${id} is told to have ${sizeGb} GB, and has ${trueGb}`, [
    id,
    ownerRef,
  ]);
}

/** I4, at any time: what a volume grew by was claimed before the platform was asked for it. */
export function growthIsClaimed({ id }: VolumeRecord, trueGb: number, claimedGb: number): void {
  hold('I4', trueGb <= claimedGb, () => `${id} has ${trueGb} GB, and claims ${claimedGb}`, [id]);
}

/** I26: while nothing changes, the platform gets no more calls than its regular listings. */
export function callsAreFew(calls: number, allowed: number): void {
  hold('I26', calls <= allowed, () => `${calls} calls to the platform where ${allowed} are enough`);
}
