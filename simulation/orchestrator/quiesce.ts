import { concerns } from '../../src/orchestrator/model/cordon.ts';
import { sizeGbOf } from '../../src/platform-model/records.ts';
import { hold, untilHeld } from '../kernel/violation.ts';
import { catalog } from './catalog.ts';
import { endHostFaults } from './host-faults.ts';
import { isSoldByCount } from './invariants/counts.ts';
import {
  attachmentsMatch,
  callsAreFew,
  claimsMatchRows,
  createsAreCounted,
  everyIntentEnds,
  growthIsClaimed,
  isKept,
  noPolicyIsPending,
  noStorageIsOversold,
  nothingIsOversold,
  refsOf,
  rowsMatchMachines,
  sizeIsTrue,
  storageClaimsMatch,
  volumesAreThere,
} from './invariants/quiescence.ts';
import { oldTombstonesArePruned, theEndedRead404 } from './invariants/tombstones.ts';
import { acceptRealLosses, removeLateMachines } from './operator.ts';
import type { World } from './world.ts';

const MINUTE_MS = 60_000;
/** Longer than every backoff, reservation, wrong clock and grace period. */
const LONGEST_MS = 5 * 60 * MINUTE_MS;
const OPERATOR_AFTER_MS = 5 * MINUTE_MS;
const STEADY_MS = 60_000;
/** A machine that is kept is looked at now and then. */
const CALLS_FOR_KEPT = 2;

/** Ends all faults, waits until all work is done, and checks the invariants of a system at rest. */
export async function quiesce(world: World): Promise<void> {
  const { scheduler, inspector } = world;
  endFaults(world);
  await world.cordons.takeBackTimed();
  const calmSince = scheduler.now;
  await comeToRest(world, calmSince);
  const callsBefore = world.callFaults.calls;
  const keptBefore = countKept(world);
  await scheduler.runUntil(scheduler.now + STEADY_MS);
  inspector.assertHeld();
  const kept = countKept(world);
  if (kept === keptBefore) {
    await checkRest(world);
    const rounds = STEADY_MS / (1_000 * world.scenario.watchIntervalS) + 1;
    const callsARound = world.traits.counts === 'not' ? 2 : 3;
    const listings = Math.ceil(rounds) * world.replicas.length * callsARound;
    callsAreFew(world.callFaults.calls - callsBefore, listings + CALLS_FOR_KEPT * kept);
  } else {
    // A hold that outages of the platform had extended has ended, and its machine is being removed.
    await comeToRest(world, calmSince);
  }
  await checkEnded(world);
}

/** Waits until all work is done. The operator acts a while after the faults ended, at `calmSince`. */
async function comeToRest(world: World, calmSince: number): Promise<void> {
  const { scheduler, inspector } = world;
  await untilHeld(
    scheduler,
    calmSince + LONGEST_MS,
    () => checkRest(world),
    async () => {
      if (scheduler.now - calmSince > OPERATOR_AFTER_MS) {
        await acceptRealLosses(world);
        await removeLateMachines(world);
      }
      inspector.assertHeld();
    },
  );
}

/** How many failed instances still have their machine, for the operator to look at. */
function countKept({ machines, inspector }: World): number {
  const refs = refsOf(machines.all());
  return inspector.history.instances().filter((record) => isKept(record, refs)).length;
}

/** What has ended: its clients read 404, and its tombstone does not stay. */
async function checkEnded(world: World): Promise<void> {
  const { scheduler, inspector, clients, scenario, traits, tally } = world;
  const oldAt = scheduler.now - 1_000 * scenario.tombstonesKeptS - MINUTE_MS;
  const ended = [
    ...inspector.history.instances().map(({ id, accountId, name }) => ({
      path: `/v1/instances/${id}`,
      id,
      accountId,
      // A key that may be sent again keeps its instance.
      mayBePruned: clients.tenantOf(accountId)?.creates.get(name ?? '')?.isRetried === false,
    })),
    ...inspector.history
      .volumes()
      .map(({ id, accountId }) => ({ path: `/v1/volumes/${id}`, id, accountId, mayBePruned: true })),
  ].filter(({ id }) => inspector.history.end(id) !== undefined);
  // A server whose clock was ahead counts from there.
  const isPruned = traits.manifest.keepsNotes && tally.clockJumps === 0;
  for (const { id, mayBePruned } of ended)
    if (isPruned && mayBePruned && (inspector.history.lastWrite(id) ?? 0) < oldAt)
      oldTombstonesArePruned(id, inspector.isPruned(id));
  const asked = ended.map(async ({ path, accountId }) => {
    const tenant = clients.tenantOf(accountId);
    const reply = tenant && (await clients.ask(tenant, { method: 'GET', path }));
    return reply;
  });
  await scheduler.runUntil(scheduler.now + MINUTE_MS);
  for (const reply of await Promise.all(asked)) if (reply !== undefined) theEndedRead404(reply);
  inspector.assertHeld();
}

function endFaults(world: World): void {
  world.journal.note('world', 'comes to rest');
  world.isCalm = true;
  world.callFaults.end();
  endHostFaults(world);
  for (const { network } of world.sites.values()) network.clear();
  world.healReplicas();
}

async function checkRest(world: World): Promise<void> {
  const { machines, volumes, clients, inspector } = world;
  const { history } = inspector;
  const { read } = world.database.store;
  hold('I24', world.running === 0, () => `${world.running} requests have no answer`);
  const { count } = await read.work.backlog();
  const instances = history.instances();
  const kept = instances.filter((record) => isKept(record, refsOf(machines.all())));
  for (const { id } of kept) noPolicyIsPending(id, policyLeftMs(world, id));
  everyIntentEnds(instances, history.volumes(), count - kept.length);
  rowsMatchMachines(instances, machines.all());
  const holds = new Map<string, boolean>();
  for (const { id } of instances) holds.set(id, await read.claims.isHeldBy(id));
  // A create that came late may make a lost machine again, whose unit was given back: that only raises an alarm.
  const expected = instances.filter(({ ownerRef }) => !inspector.isLate(ownerRef));
  claimsMatchRows(expected, holds, refsOf(machines.all()));
  await checkCapacity(world);
  for (const { creates } of clients.tenants)
    createsAreCounted(creates.values(), (wanted) => instances.filter(({ name }) => name === wanted).length);
  const truth = new Map(volumes.all().map((volume) => [volume.spec.ref, volume]));
  const inTime = history
    .volumes()
    .filter(({ ownerRef, deletedAt }) => deletedAt === null || !inspector.isLate(ownerRef));
  volumesAreThere(inTime, new Set(truth.keys()));
  for (const volume of history.volumes()) {
    storageClaimsMatch(volume, await read.storageClaims.heldBy(volume.id));
    const real = truth.get(volume.ownerRef);
    if (real !== undefined) {
      sizeIsTrue(volume, sizeGbOf(real));
      attachmentsMatch(
        volume,
        await read.volumes.attachmentsOfVolume(volume.id),
        volumes.holders(real.spec.ref),
      );
    }
  }
  const unclaimed = new Set(instances.flatMap(({ id, ownerRef }) => (holds.get(id) ? [] : ownerRef)));
  await checkSales(world, unclaimed);
}

/** For how long a machine of what failed may be kept yet, in milliseconds, until the configuration has it removed. */
function policyLeftMs({ scenario, scheduler, inspector }: World, id: string): number {
  const { heldFailuresS } = scenario;
  if (heldFailuresS === null) return 0;
  const failedAt = inspector.history.lastWrite(id) ?? 0;
  return failedAt + 1_000 * heldFailuresS + MINUTE_MS - scheduler.now;
}

/** What every server offers, where a unit is free. A broken machine may have its unit although its row claims none. */
async function checkSales(
  { sites, catalog, traits, database, replicas, cordons, machines }: World,
  unclaimed: ReadonlySet<string>,
): Promise<void> {
  const use = await database.store.read.claims.use();
  const broken = machines
    .all()
    .filter((one) => one.power === 'failed' && one.holdsUnit && unclaimed.has(one.spec.ref));
  for (const { id: offerId, platform, placements } of catalog.offers.values())
    for (const { serving } of replicas) {
      const offered = await serving?.listOffered(offerId);
      if (offered === undefined) continue;
      for (const { region, units } of placements) {
        const datacenter = catalog.regions.get(region)?.datacenter ?? '';
        const kept = broken.filter(({ spec }) => spec.offerId === offerId && spec.datacenter === datacenter);
        const hosts = (sites.get(platform)?.capacity.units(offerId, datacenter) ?? 0) - kept.length;
        const isCordoned = cordons.standing.some((one) =>
          concerns(one, { region, offer: offerId, platform }),
        );
        const open = traits.counts === 'not' ? units : Math.min(units, hosts);
        const most = isCordoned ? 0 : open;
        const claim = use.find((entry) => entry.offerId === offerId && entry.region === region);
        isSoldByCount({ offerId, region }, most - (claim?.claimed ?? 0), offered);
      }
    }
}

/** I1, at any time: checked after each step that may have changed what is claimed. */
export async function checkCapacity({ database, inspector, volumes }: World): Promise<void> {
  for (const volume of volumes.all()) {
    const row = inspector.history.volumeByRef(volume.spec.ref);
    const hasGrown = sizeGbOf(volume) > volume.spec.sizeGb;
    if (row === undefined || !hasGrown || row.deletedAt !== null) continue;
    growthIsClaimed(row, sizeGbOf(volume), await database.store.read.storageClaims.heldBy(row.id));
  }
  if (!inspector.areClaimsWritten) return;
  inspector.areClaimsWritten = false;
  nothingIsOversold(
    await database.store.read.claims.use(),
    (offerId, region) =>
      catalog.offers.get(offerId)?.placements.find((place) => place.region === region)?.units ?? 0,
  );
  noStorageIsOversold(
    await database.store.read.storageClaims.use(),
    (region) => catalog.regions.get(region)?.storageGb,
  );
}
