import type { SimulatorTruth } from '../../src/drivers/simulator/platform/simulator.ts';
import type { UnitEvent } from '../../src/drivers/simulator/platform/unit-history.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';

/** What the orchestrator's database holds. */
export interface Books {
  instances: {
    id: string;
    ownerRef: string;
    offerId: string;
    region: string;
    status: string;
    /** Whether it keeps its unit while it is stopped. */
    holdsStopped: boolean;
    error: string | null;
  }[];
  volumes: { id: string; ownerRef: string; status: string; isDeleted: boolean }[];
  attachments: { volumeId: string; instanceId: string; state: string }[];
  claims: { instanceId: string; offerId: string; region: string }[];
  work: { resourceId: string; kind: string; leaseToken: string | null; lastError: string | null }[];
}

/** The power that a machine has when nothing is under way; absent: there is no machine. */
const POWER: Partial<Record<string, string>> = { ONLINE: 'running', STOPPED: 'stopped' };
/** The row stays for its owner to delete; what it had is cleaned. */
const CLEANED = new Set(['ERROR', 'OFFLINE']);

/** Where rows, claims and the platform disagree once nothing is under way; empty: nowhere. */
export function disagreements(books: Books, truth: SimulatorTruth, catalog: Catalog): string[] {
  return [
    ...books.work.map(
      ({ resourceId, kind, lastError }) => `${resourceId} has open work: ${kind} (${lastError})`,
    ),
    ...machineDisagreements(books, truth),
    ...claimDisagreements(books),
    ...volumeDisagreements(books, truth),
    ...oversold(books, catalog),
    ...soldTwice(truth),
  ];
}

function machineDisagreements({ instances }: Books, { machines }: SimulatorTruth): string[] {
  const found: string[] = [];
  const live = instances.filter(({ status }) => status !== 'DESTROYED');
  const expected = new Map(
    live.filter(({ status }) => !CLEANED.has(status)).map((instance) => [instance.ownerRef, instance]),
  );
  for (const { id, ownerRef, status } of expected.values()) {
    const machine = machines.find(({ ref }) => ref === ownerRef);
    if (POWER[status] === undefined) found.push(`${id} is still ${status}`);
    else if (machine?.power !== POWER[status])
      found.push(`${id} is ${status}, its machine ${machine?.power ?? 'gone'}`);
  }
  for (const { ref, power } of machines)
    if (!expected.has(ref)) found.push(`the machine ${ref} (${power}) belongs to nobody`);
  return found;
}

function claimDisagreements({ instances, claims }: Books): string[] {
  const found: string[] = [];
  const held = new Set(claims.map(({ instanceId }) => instanceId));
  for (const { id, status, holdsStopped } of instances) {
    const isHolding = status === 'ONLINE' || (status === 'STOPPED' && holdsStopped);
    if (held.has(id) !== isHolding)
      found.push(`${id} (${status}) ${isHolding ? 'has no claim' : 'still has a claim'}`);
    held.delete(id);
  }
  return [...found, ...[...held].map((id) => `the claim of ${id} belongs to nobody`)];
}

function volumeDisagreements({ volumes, attachments, instances }: Books, truth: SimulatorTruth): string[] {
  const found: string[] = [];
  const live = new Map(
    volumes.filter(({ isDeleted }) => !isDeleted).map((volume) => [volume.ownerRef, volume]),
  );
  for (const { id, ownerRef, status } of live.values()) {
    if (status !== 'AVAILABLE' && status !== 'ATTACHED') found.push(`the volume ${id} is still ${status}`);
    if (!truth.volumes.some(({ ref }) => ref === ownerRef))
      found.push(`the volume ${id} (${status}) is gone`);
  }
  for (const { ref } of truth.volumes) if (!live.has(ref)) found.push(`the volume ${ref} belongs to nobody`);
  const refs = new Map([...volumes, ...instances].map(({ id, ownerRef }) => [id, ownerRef]));
  const rows = attachments.map(
    ({ volumeId, instanceId, state }) => `${refs.get(volumeId)} on ${refs.get(instanceId)} ${state}`,
  );
  const real = truth.attachments.map(({ volume, machine, state }) => `${volume} on ${machine} ${state}`);
  for (const row of rows) if (!real.includes(row)) found.push(`only a row says: ${row}`);
  for (const one of real) if (!rows.includes(one)) found.push(`only the platform says: ${one}`);
  return found;
}

/** Placements of which more units are claimed than there are, at any moment. */
export function oversold({ claims }: Pick<Books, 'claims'>, catalog: Catalog): string[] {
  const claimed = new Map<string, number>();
  for (const { offerId, region } of claims)
    claimed.set(`${offerId}/${region}`, (claimed.get(`${offerId}/${region}`) ?? 0) + 1);
  return [...claimed].flatMap(([placement, count]) => {
    const [offerId = '', region = ''] = placement.split('/');
    const units =
      catalog.offers.get(offerId)?.placements.find((entry) => entry.region === region)?.units ?? 0;
    return count > units ? [`${count} of the ${units} units of ${offerId} in ${region} are claimed`] : [];
  });
}

/** What the platform's own history says of units that were sold while they were taken. */
function soldTwice({ units, capacity }: Pick<SimulatorTruth, 'units' | 'capacity'>): string[] {
  const found = units
    .filter(({ event }) => event === 'refused')
    .map(({ at, ref, offerId }) => `the platform had no unit of ${offerId} left for ${ref} at ${at}`);
  const inUse = new Map<string, number>();
  for (const { offerId, datacenter, event, at } of inOrder(units)) {
    const placement = `${offerId} in ${datacenter}`;
    const count = (inUse.get(placement) ?? 0) + (event === 'taken' ? 1 : -1);
    inUse.set(placement, count);
    const there = capacity.filter((entry) => entry.offerId === offerId && entry.datacenter === datacenter);
    const total = there.reduce((sum, entry) => sum + entry.units, 0);
    if (count > total) found.push(`${count} of ${total} units of ${placement} were in use at ${at}`);
  }
  return found;
}

/** By time; what was freed at a moment was free for who took it then. */
function inOrder(events: readonly UnitEvent[]): UnitEvent[] {
  const rank = { freed: 0, taken: 1, refused: 2 };
  return events
    .filter(({ event }) => event !== 'refused')
    .sort((a, b) => a.at - b.at || rank[a.event] - rank[b.event]);
}
