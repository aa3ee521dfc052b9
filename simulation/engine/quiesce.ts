import { idOf, refOf } from '../../src/orchestrator/model/attempt.ts';
import type { InstanceRecord, VolumeRecord } from '../../src/orchestrator/model/records.ts';
import { hold, untilHeld } from '../kernel/violation.ts';
import {
  attachmentsMatch,
  claimsMatchRows,
  createsAreCounted,
  everyIntentEnds,
  isKept,
  storageClaimsMatch,
} from '../orchestrator/invariants/quiescence.ts';
import { theEndedRead404 } from '../orchestrator/invariants/tombstones.ts';
import { checkOutages, TOLD_WITHIN_MS } from './check-outages.ts';
import { isOf } from './engine.ts';
import { bytesAreFound } from './invariants/bytes.ts';
import { isAccountedFor, nothingIsLeftOf, refusalsAreTold, rowsMatchEngine } from './invariants/rest.ts';
import type { EngineWorld } from './world.ts';

const MINUTE_MS = 60_000;
/** Longer than every backoff and grace period, beside the times for which the scenario keeps things. */
const LONGEST_MS = 15 * MINUTE_MS;
const OPERATOR_AFTER_MS = 5 * MINUTE_MS;

/** Ends all faults, waits until all work is done, and checks the invariants of a system at rest. */
export async function quiesce(world: EngineWorld): Promise<void> {
  const { scheduler, inspector } = world;
  endFaults(world);
  await checkOutages(world);
  await checkRefusals(world);
  const calmSince = scheduler.now;
  const { heldFailuresS, lostClaimsHeldS, disksKeptS } = world.scenario;
  const keptMs = 1_000 * Math.max(heldFailuresS ?? 0, lostClaimsHeldS, disksKeptS);
  // Servers restart, and are shown what silent hosts hid and a restored database has forgotten.
  await scheduler.runUntil(scheduler.now + MINUTE_MS);
  const latest = calmSince + keptMs + longestWrongClockMs(world) + LONGEST_MS;
  await untilHeld(
    scheduler,
    latest,
    () => checkRest(world),
    async () => {
      if (scheduler.now - calmSince > OPERATOR_AFTER_MS) {
        await world.acceptLosses();
        await world.orderRemovals();
      }
      inspector.assertHeld();
    },
  );
  await scheduler.runUntil(scheduler.now + MINUTE_MS);
  inspector.assertHeld();
  await checkRest(world);
  await checkReplies(world);
  inspector.assertHalfMadeIsKept();
}

/**
 * A lone server that is restarted while its clock is behind waits for the times that it stored before, also once the clock is
 * right: its time gains a tenth only. Its clock may have been ahead then, and behind now.
 */
function longestWrongClockMs({ replicas: [lone, ...others] }: EngineWorld): number {
  return lone === undefined || others.length > 0 ? 0 : 2 * lone.mostOffMs;
}

function endFaults(world: EngineWorld): void {
  world.journal.note('world', 'comes to rest');
  world.isCalm = true;
  world.engine.clear();
  world.people.rest();
  world.healReplicas();
}

/** What is refused for two minutes is told, before people look. */
async function checkRefusals({ scheduler, inspector, people, engine, database }: EngineWorld): Promise<void> {
  const refused = () => {
    const there = new Set(engine.machines().map(({ ref }) => ref));
    return inspector.history
      .instances()
      .filter(
        ({ status, ownerRef }) =>
          status === 'DESTROYING' && people.isProtected(ownerRef) && there.has(ownerRef),
      );
  };
  if (refused().length > 0) {
    const since = scheduler.now;
    await scheduler.runUntil(since + TOLD_WITHIN_MS);
    const old = refused().filter(({ updatedAt }) => updatedAt <= since);
    refusalsAreTold(old, await database.store.read.alarms.list());
  }
  people.unprotect();
}

async function checkRest(world: EngineWorld): Promise<void> {
  const { engine, clients, inspector, database } = world;
  const { history } = inspector;
  const { read } = database.store;
  hold('I24', world.running === 0, () => `${world.running} requests have no answer`);
  const { count } = await read.work.backlog();
  const [instances, volumes] = [history.instances(), history.volumes()];
  const own = engine.machines().filter(({ ref, isCopy }) => ref !== undefined && !isCopy);
  const refs = new Set(own.flatMap(({ ref }) => ref ?? []));
  // What an engine could not build is kept too.
  for (const { id, ownerRef } of instances)
    if ((await read.work.of(id))?.kind === 'hold' && engine.traces(id).length > 0) refs.add(ownerRef);
  const paused = new Set(own.flatMap(({ ref, power }) => (power === 'paused' ? (ref ?? []) : [])));
  // What an engine paused keeps its unit, and is observed, until its tenant starts or deletes it.
  const isPaused = ({ status, ownerRef }: InstanceRecord): boolean =>
    status === 'STOPPED' && paused.has(ownerRef);
  const kept = instances.filter((record) => isKept(record, refs) || isPaused(record));
  everyIntentEnds(instances, volumes, count - kept.length);
  rowsMatchEngine(instances, own);
  const holds = new Map<string, boolean>();
  for (const { id } of instances) holds.set(id, await read.claims.isHeldBy(id));
  // Where a machine was lost, and turned up again, its unit may have been given back and sold meanwhile.
  const wasLost = ({ id, status }: InstanceRecord): boolean =>
    status === 'OFFLINE' || inspector.hasSuffered(id, 'undefine');
  claimsMatchRows(
    instances.filter((record) => !wasLost(record) && !isPaused(record)),
    holds,
    refs,
  );
  for (const { creates } of clients.tenants)
    createsAreCounted(creates.values(), (wanted) => instances.filter(({ name }) => name === wanted).length);
  for (const volume of volumes) await checkVolume(world, volume);
  for (const row of [...instances, ...volumes])
    if (hasEnded(row) && !isBroughtBack(world, row.id)) nothingIsLeftOf(row.id, engine.traces(row.id));
  checkBytes(world);
}

/** What somebody brings back after its row was pruned is told as something without a row. */
function isBroughtBack({ inspector }: EngineWorld, id: string): boolean {
  return inspector.isPruned(id) && inspector.hasSuffered(id, 'undefine');
}

/** It was asked to end, and that is done. */
function hasEnded(row: InstanceRecord | VolumeRecord): boolean {
  if (row.destroyOrder === null) return false;
  const isGone = 'deletedAt' in row ? row.deletedAt !== null : row.status === 'DESTROYED';
  return isGone || row.status === 'ERROR';
}

async function checkVolume(
  { engine, database, inspector }: EngineWorld,
  volume: VolumeRecord,
): Promise<void> {
  const { read } = database.store;
  const { id, ownerRef, status, deletedAt } = volume;
  storageClaimsMatch(volume, await read.storageClaims.heldBy(id));
  // Where the database forgot a DELETE, the volume is gone all the same.
  const isForgotten = volume.destroyOrder === null && inspector.wasOrdered(id);
  if (deletedAt !== null || status === 'ERROR' || isForgotten) return;
  const disk = engine.disks().find(({ ref }) => ref === ownerRef);
  hold('I15', disk !== undefined, () => `${id} is ${status}, and does not exist`, [id]);
  const holders = engine
    .machines()
    .filter(({ volumes }) => volumes.some(({ ref }) => ref === ownerRef))
    .flatMap(({ isCopy, ref }) => (isCopy || ref === undefined ? [] : refOf(idOf(ref))));
  attachmentsMatch(volume, await read.volumes.attachmentsOfVolume(id), holders);
}

/** Of what lives, each writing is on the disk that its tenant has. */
function checkBytes({ inspector, engine }: EngineWorld): void {
  const { history, writings } = inspector;
  const machines = engine.machines();
  for (const writing of writings.values()) {
    const [instance, volume] = [history.instance(writing.id), history.volume(writing.id)];
    if (instance !== undefined && (instance.status === 'ONLINE' || instance.status === 'STOPPED')) {
      const machine = machines.find(({ ref, isCopy }) => !isCopy && isOf(instance.id, ref));
      bytesAreFound(writing, machine?.disk);
    }
    if (volume !== undefined && volume.deletedAt === null && volume.destroyOrder === null)
      bytesAreFound(
        writing,
        engine.disks().find(({ ref }) => ref === volume.ownerRef),
      );
  }
}

/** What has ended reads 404; what the engine has without a row reads 503, or has an alarm. */
async function checkReplies(world: EngineWorld): Promise<void> {
  const { scheduler, inspector, clients, database, engine } = world;
  const { history } = inspector;
  const paths = [
    ...history.instances().map(({ id, accountId }) => ({ id, accountId, path: `/v1/instances/${id}` })),
    ...history.volumes().map(({ id, accountId }) => ({ id, accountId, path: `/v1/volumes/${id}` })),
  ];
  const asked = paths
    .filter(({ id }) => history.end(id) !== undefined && !isBroughtBack(world, id))
    .map(({ accountId, path }) => {
      const tenant = clients.tenantOf(accountId);
      return tenant && clients.ask(tenant, { method: 'GET', path });
    });
  await scheduler.runUntil(scheduler.now + MINUTE_MS);
  for (const reply of await Promise.all(asked)) if (reply !== undefined) theEndedRead404(reply);
  const alarms = await database.store.read.alarms.list();
  for (const id of inspector.unowned) {
    const isThere = engine.traces(id).length > 0 && history.instance(id) === undefined;
    if (!isThere || history.volume(id) !== undefined) continue;
    const isAlarmed = alarms.some(({ subject, text }) => subject.includes(id) || text.includes(id));
    const [tenant] = clients.tenants;
    const asking = tenant && clients.ask(tenant, { method: 'GET', path: `/v1/instances/${id}` });
    await scheduler.runUntil(scheduler.now + MINUTE_MS);
    inspector.check(() => undefined);
    isAccountedFor({ id, status: (await asking)?.status, isAlarmed });
  }
  inspector.assertHeld();
}
