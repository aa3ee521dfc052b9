import type { Deed, DeedKind, ProviderTruth } from '../support/doubles/journaled-provider.ts';
import { isAccepted, mayHappen, type Order, openUntil, type Verb } from './orders.ts';
import type { DeploymentRow, Rows, VolumeRow } from './rows.ts';

/** Between the clocks of the processes, and between a moment and the row that says it. */
const SLACK_MS = 1_000;

/** What users order that a provider carries out as one deed. */
const verbOf: Partial<Record<DeedKind, Verb>> = {
  stop: 'pause',
  start: 'resume',
  restart: 'restart',
  attach: 'attach',
  detach: 'detach',
  resize: 'resize',
};

/** Rows by the provider's ids, as the provider's own journal of creates says which is whose. */
export interface Owners {
  deploymentOf(instanceId: string): DeploymentRow | undefined;
  volumeOf(volumeId: string): VolumeRow | undefined;
}

export function ownersOf({ deeds }: Pick<ProviderTruth, 'deeds'>, rows: Rows): Owners {
  const byName = <Row extends { providerName: string }>(kind: DeedKind, all: readonly Row[]) => {
    const named = new Map(all.map((row) => [row.providerName, row]));
    return new Map(
      deeds.filter((deed) => deed.kind === kind).map(({ id, name }) => [id, named.get(name ?? '')]),
    );
  };
  const deployments = byName('create', rows.deployments);
  const volumes = byName('create volume', rows.volumes);
  return { deploymentOf: (id) => deployments.get(id), volumeOf: (id) => volumes.get(id) };
}

/** Whether a machine of a deployment's name is another than the one that it has. */
export function isSpare({ providerInstanceId }: DeploymentRow, id: string): boolean {
  return providerInstanceId !== null && providerInstanceId !== id;
}

/**
 * Deeds that are not right: a create that came twice, and each deed that was not ordered, that was ordered and
 * answered with "nothing changed", or that was done more than `givenUpAfterMs` after it was ordered.
 */
export function wrongDeeds(
  truth: Pick<ProviderTruth, 'deeds' | 'repeatedCreates'>,
  rows: Rows,
  orders: readonly Order[],
  givenUpAfterMs: number,
): string[] {
  const owners = ownersOf(truth, rows);
  return [
    ...secondCreates(truth),
    ...truth.deeds.flatMap((deed) => unwantedEnd(deed, owners, orders)),
    ...unordered(truth.deeds, owners, orders, givenUpAfterMs),
  ];
}

function secondCreates({ deeds, repeatedCreates }: Pick<ProviderTruth, 'deeds' | 'repeatedCreates'>) {
  const seen = new Set<string>();
  const found = repeatedCreates.map((name) => `the create of ${name} was sent twice`);
  for (const { kind, name = '' } of deeds) {
    if (kind !== 'create' && kind !== 'create volume') continue;
    if (seen.has(name)) found.push(`${name} was made twice`);
    seen.add(name);
  }
  return found;
}

/** Of a create that no row knows, and of a delete of what has not ended. */
function unwantedEnd(deed: Deed, owners: Owners, orders: readonly Order[]): string[] {
  const { kind, id, at } = deed;
  if (kind === 'create' && owners.deploymentOf(id) === undefined) return [`no row has the machine ${id}`];
  if (kind === 'create volume' && owners.volumeOf(id) === undefined) return [`no row has the volume ${id}`];
  const deployment = owners.deploymentOf(id);
  if (kind === 'delete' && deployment !== undefined && !isSpare(deployment, id)) {
    const { id: own, stoppedAt } = deployment;
    if (stoppedAt === null || stoppedAt > at + SLACK_MS)
      return [`the machine ${id} was deleted at ${at}, and ${own} had not ended (${stoppedAt})`];
  }
  if (kind === 'delete volume') {
    const { volumeId } = owners.volumeOf(id) ?? {};
    const isOrdered = orders.some(
      (order) =>
        order.verb === 'delete volume' && order.subject === volumeId && order.sentAt <= at + SLACK_MS,
    );
    const isUnknown = !orders.some((order) => order.verb === 'create volume' && order.subject === volumeId);
    if (!isOrdered && !isUnknown)
      return [`the volume ${id} was deleted at ${at}, and nobody had ordered that`];
  }
  return [];
}

/** Each deed takes one order of its own. */
function unordered(
  deeds: readonly Deed[],
  owners: Owners,
  orders: readonly Order[],
  givenUpAfterMs: number,
): string[] {
  const open = new Map<string, Order[]>();
  for (const order of orders) {
    const key = keyOf(order.verb, order.subject, order.deploymentId, order.sizeGb);
    if (mayHappen(order)) open.set(key, [...(open.get(key) ?? []), order]);
  }
  return deeds
    .toSorted((a, b) => a.at - b.at)
    .flatMap((deed) => {
      const verb = verbOf[deed.kind];
      if (verb === undefined || isByItself(deed, owners)) return [];
      const { subject, deploymentId } = subjectOf(deed, owners);
      const key = keyOf(verb, subject, deploymentId, deed.sizeGb);
      const candidates = open.get(key) ?? [];
      const fitting = candidates
        .filter((order) => order.sentAt <= deed.at + SLACK_MS && deed.at <= limitOf(order, givenUpAfterMs))
        .toSorted((a, b) => limitOf(a, givenUpAfterMs) - limitOf(b, givenUpAfterMs));
      const [taken] = fitting;
      if (taken !== undefined) {
        open.set(
          key,
          candidates.filter((order) => order !== taken),
        );
        return [];
      }
      return [`${deed.kind} of ${subject ?? deed.id} at ${toTime(deed.at)}: ${whyNot(orders, key, deed)}`];
    });
}

/** What was accepted was done by then; what has no clear answer is given up some time after it was sent. */
function limitOf(order: Order, givenUpAfterMs: number): number {
  return isAccepted(order) ? (order.answeredAt ?? 0) + SLACK_MS : openUntil(order, givenUpAfterMs);
}

/** A volume leaves a deployment that has ended. */
function isByItself({ kind, instanceId = '', at }: Deed, owners: Owners): boolean {
  if (kind !== 'detach') return false;
  const { stoppedAt = null } = owners.deploymentOf(instanceId) ?? {};
  return stoppedAt !== null && stoppedAt <= at + SLACK_MS;
}

function subjectOf({ kind, id, instanceId }: Deed, owners: Owners) {
  if (kind === 'stop' || kind === 'start' || kind === 'restart')
    return { subject: owners.deploymentOf(id)?.id, deploymentId: undefined };
  const deploymentId = instanceId === undefined ? undefined : owners.deploymentOf(instanceId)?.id;
  return { subject: owners.volumeOf(id)?.volumeId, deploymentId };
}

function keyOf(verb: Verb, subject = '', deploymentId = '', sizeGb = 0): string {
  return [verb, subject, deploymentId, verb === 'resize' ? sizeGb : ''].join(' ');
}

function whyNot(orders: readonly Order[], key: string, { at }: Deed): string {
  const same = orders.filter(
    (order) => keyOf(order.verb, order.subject, order.deploymentId, order.sizeGb) === key,
  );
  const outcomes = same.map(
    ({ sentAt, answeredAt, status }) =>
      `${status ?? 'no answer'} (sent ${((at - sentAt) / 1000).toFixed(1)} s before${answeredAt === null ? '' : `, answered ${((at - answeredAt) / 1000).toFixed(1)} s before`})`,
  );
  return outcomes.length === 0 ? 'nobody ordered it' : `no order is left for it of ${outcomes.join(', ')}`;
}

function toTime(at: number): string {
  return new Date(at).toISOString();
}
