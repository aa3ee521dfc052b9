import type { Volume } from '../../src/contract/volume.ts';
import type { ProviderTruth } from '../support/doubles/journaled-provider.ts';
import { isAccepted, type Order, openUntil } from './orders.ts';
import type { DeploymentRow, Rows } from './rows.ts';

/** What the machine of a deployment is once nothing is under way. */
const STATUS: Readonly<Record<string, string>> = { running: 'ONLINE', stopped: 'STOPPED' };

/** Where the rows and the provider disagree once nothing is under way; empty: nowhere. */
export function disagreements(rows: Rows, truth: Pick<ProviderTruth, 'instances' | 'volumes'>): string[] {
  return [...machineDisagreements(rows, truth), ...volumeDisagreements(rows, truth)];
}

function machineDisagreements({ deployments }: Rows, { instances }: Pick<ProviderTruth, 'instances'>) {
  const found: string[] = [];
  const machines = new Map(instances.map((instance) => [instance.id, instance]));
  const owned = new Set<string>();
  for (const { id, status, providerInstanceId, cleanup } of deployments) {
    if (status === 'deploying') found.push(`${id} is still deploying`);
    if (cleanup === 'wanted') found.push(`${id} is ${status}, and its machine is not cleaned up`);
    const wanted = STATUS[status];
    if (wanted === undefined) continue;
    const machine = machines.get(providerInstanceId ?? '');
    if (machine?.status !== wanted)
      found.push(`${id} is ${status}, and its machine is ${machine?.status ?? 'gone'}`);
    if (machine === undefined) continue;
    if (owned.has(machine.id)) found.push(`two deployments have the machine ${machine.id}`);
    owned.add(machine.id);
  }
  for (const { id, name, status } of instances)
    if (!owned.has(id)) found.push(`the machine ${id} (${name}, ${status}) belongs to no live deployment`);
  return found;
}

function volumeDisagreements(
  { deployments, volumes, attachments }: Rows,
  truth: Pick<ProviderTruth, 'volumes'>,
): string[] {
  const found: string[] = [];
  const disks = new Map(truth.volumes.map((volume) => [volume.id, volume]));
  const machineOf = new Map(deployments.map((row) => [row.id, row.providerInstanceId ?? '']));
  for (const { volumeId, state } of attachments)
    if (state !== 'attached') found.push(`the volume ${volumeId} is still ${state}`);
  for (const { id, volumeId, status, sizeGb, providerVolumeId, cleanup } of volumes) {
    if (status === 'creating' || status === 'deleting') found.push(`${volumeId} is still ${status}`);
    if (cleanup === 'wanted') found.push(`${volumeId} is ${status}, and not cleaned up`);
    if (status !== 'available' && status !== 'attached') continue;
    const own = attachments.filter((attachment) => attachment.volumeId === id);
    const here = { sizeGb, on: toText(own.map(({ deploymentId }) => machineOf.get(deploymentId) ?? '')) };
    const difference = differenceOf(here, disks.get(providerVolumeId ?? ''));
    if (difference !== null) found.push(`${volumeId} ${difference}`);
    disks.delete(providerVolumeId ?? '');
  }
  for (const { id, name } of disks.values()) found.push(`the volume ${id} (${name}) belongs to no row`);
  return found;
}

function differenceOf(here: { sizeGb: number; on: string }, disk: Volume | undefined): string | null {
  if (disk === undefined) return 'is not at the provider';
  if (disk.size_gb !== here.sizeGb) return `has ${here.sizeGb} GB, at the provider ${disk.size_gb}`;
  const there = toText(disk.attached_instance_ids ?? []);
  return here.on === there ? null : `is on ${here.on}, at the provider on ${there}`;
}

function toText(ids: readonly string[]): string {
  return ids.toSorted().join() || 'nothing';
}

/** What was accepted, and is not so. Of something with an order without a clear answer since, nothing is said. */
export function brokenPromises(
  { deployments, volumes, attachments }: Rows,
  orders: readonly Order[],
  givenUpAfterMs: number,
): string[] {
  const found: string[] = [];
  const rows = new Map(deployments.map((row) => [row.id, row]));
  const disks = new Map(volumes.map((row) => [row.volumeId, row]));
  for (const [subject, own] of bySubject(orders)) {
    const isVolume = own.some(({ verb }) => VOLUME_VERBS.includes(verb));
    const row = rows.get(subject);
    const disk = disks.get(subject);
    const created = own.find(({ verb, status }) => verb.startsWith('create') && status === 201);
    if (created !== undefined && (isVolume ? disk : row) === undefined)
      found.push(`${subject} was answered 201 and has no row`);
    if (row !== undefined) found.push(...ofDeployment(row, own, givenUpAfterMs));
    if (disk === undefined) continue;
    const size = Math.max(0, ...own.filter(isAccepted).flatMap(({ sizeGb }) => sizeGb ?? []));
    if (size > disk.sizeGb) found.push(`${subject} was made ${size} GB large and has ${disk.sizeGb}`);
    const change = lastCertain(own, ['attach', 'detach'], givenUpAfterMs);
    const isOn = attachments.some(
      ({ volumeId, deploymentId }) => volumeId === disk.id && deploymentId === change?.deploymentId,
    );
    const isEnded = rows.get(change?.deploymentId ?? '')?.stoppedAt !== null;
    if (change !== undefined && !isEnded && isOn !== (change.verb === 'attach'))
      found.push(`${change.verb} of ${subject} was answered 200 and is not so`);
    if (own.some(({ verb, status }) => verb === 'delete volume' && status === 200) && disk.deletedAt === null)
      found.push(`${subject} was deleted and is there`);
  }
  return found;
}

function ofDeployment(row: DeploymentRow, own: readonly Order[], givenUpAfterMs: number): string[] {
  const { id, status, failureReason } = row;
  const ends = own.filter(({ verb }) => verb === 'terminate');
  if (ends.some(isAccepted) && status !== 'terminated') return [`${id} was terminated and is ${status}`];
  if (status === 'terminated') return ends.length > 0 ? [] : [`${id} is terminated, and nobody ordered that`];
  if (status === 'terminated-provider')
    return [`${id} is terminated-provider, and its provider lost nothing`];
  // A create whose answer was lost with its server may have made nothing.
  if (status === 'failed')
    return failureReason === 'provider_error' ? [] : [`${id} failed: ${failureReason}`];
  const wanted = { pause: 'stopped', resume: 'running' };
  const change = lastCertain(own, ['pause', 'resume'], givenUpAfterMs);
  if (change === undefined || ends.length > 0) return [];
  const end = wanted[change.verb as keyof typeof wanted];
  return status === end ? [] : [`${change.verb} of ${id} was answered 200, and it is ${status}`];
}

const VOLUME_VERBS: readonly string[] = ['create volume', 'delete volume', 'attach', 'detach', 'resize'];

/** The last order of these, where it was accepted and none before it can still be carried out. */
function lastCertain(
  orders: readonly Order[],
  verbs: readonly string[],
  givenUpAfterMs: number,
): Order | undefined {
  const own = orders.filter(({ verb }) => verbs.includes(verb));
  const last = own.at(-1);
  if (last === undefined || !isAccepted(last)) return undefined;
  const isOpen = (order: Order) =>
    (order.status === null || order.status === 504) && openUntil(order, givenUpAfterMs) > last.sentAt;
  return own.some(isOpen) ? undefined : last;
}

function bySubject(orders: readonly Order[]): Map<string, Order[]> {
  const all = new Map<string, Order[]>();
  for (const order of orders) {
    if (order.subject === undefined) continue;
    const own = all.get(order.subject);
    if (own === undefined) all.set(order.subject, [order]);
    else own.push(order);
  }
  return all;
}
