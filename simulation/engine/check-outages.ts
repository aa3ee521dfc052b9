import { idOf } from '../../src/orchestrator/model/attempt.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import { hold } from '../kernel/violation.ts';
import { order } from '../orchestrator/workload/commands.ts';
import { type Machine, READ_ONLY, REFUSED } from './engine.ts';
import { OTHER_SERVER } from './outages.ts';
import type { EngineWorld } from './world.ts';

const PACE_MS = 20_000;
/** How long what has to be mended may be without an alarm. */
export const TOLD_WITHIN_MS = 120_000;
/** Longer than a step of work takes, and than the first pause before a trial. */
const LONG_MS = 330_000;

/** Checks that what a person has to mend has an alarm and is not sold, and that it is sold again once it is mended. */
export async function checkOutages(world: EngineWorld): Promise<void> {
  const { now } = world.outages;
  if (now === undefined) return;
  if (now.why === OTHER_SERVER) await checkTakenOver(world, world.outages.since);
  else if (now.machine !== undefined) await checkFrozen(world, now.machine);
  else await checkRefusing(world, now.at, now.why);
  await world.outages.mend();
}

/** I44, I46: the older server has an alarm, and sells nothing. */
async function checkTakenOver(world: EngineWorld, since: number): Promise<void> {
  const { scheduler, inspector, clients } = world;
  await pass(world, TOLD_WITHIN_MS);
  // A server that was started after a restore has taken the platform back.
  if (inspector.markWrittenAt >= since) return;
  const isTold = await hasAlarm(world, /platform_taken/, /^/);
  hold('I44', isTold, () => 'another server works on the platform, without an alarm');
  const from = scheduler.now;
  for (const tenant of clients.tenants) order(world, tenant, 'destroy');
  for (let count = 0; count < 2; count++) await orderCreate(world);
  const sold = inspector.history.instances().find(({ createdAt }) => createdAt >= from);
  hold('I46', sold === undefined, () => `${sold?.id} was sold while another server has the platform`);
}

/** I44: a machine that its host does not answer about has an alarm, and so has work that waits for it. */
async function checkFrozen(world: EngineWorld, { ref = '' }: Machine): Promise<void> {
  const { scheduler, inspector, people, database } = world;
  const since = scheduler.now;
  await pass(world, TOLD_WITHIN_MS);
  const id = idOf(ref);
  const isOver = /^(DESTROYED|ERROR|OFFLINE)$/.test(inspector.history.instance(id)?.status ?? 'ERROR');
  const isTold = await hasAlarm(world, /machine_fault|platform_suspect/, new RegExp(`${id}|^default$`));
  hold('I44', isTold || isOver, () => `${ref} is frozen, without an alarm`, [id]);
  await pass(world, LONG_MS - TOLD_WITHIN_MS);
  const told = new Set((await database.store.read.alarms.list()).map(({ subject }) => subject));
  const isStuck = ({ id: other, status, updatedAt, ownerRef }: InstanceRecord): boolean =>
    /ING$/.test(status) && !told.has(other) && updatedAt <= since && !people.isProtected(ownerRef);
  const stuck = inspector.history.instances().find(isStuck);
  hold('I24', stuck === undefined || told.has('default'), () => `${stuck?.id} stays ${stuck?.status}`);
}

/** I45: a host that has refused three creates alike has an alarm and gets no more than trials, until one succeeds. */
async function checkRefusing(world: EngineWorld, host: string, why: string): Promise<void> {
  const { scheduler, inspector, outages, database, engine } = world;
  // The count of free units shows it, after the first refusals or before.
  const isSeen = why !== REFUSED && engine.driverName !== 'openstack';
  await pass(world, TOLD_WITHIN_MS);
  if (isSeen) await checkPool(world, host, why);
  // A create that was under way before it began may succeed.
  await pass(world, LONG_MS - TOLD_WITHIN_MS);
  const begunAt = scheduler.now;
  // A zone of OpenStack is followed by its region.
  const isHost = (name: string): boolean => name.split('@')[0] === host;
  const isTold = () => hasAlarm(world, /creates_refused/, new RegExp(`^default/${host}(@|$)`));
  const triedThere = (since: number, outcome: string): Set<string> =>
    new Set(
      inspector.creates
        .filter((one) => isHost(one.host) && one.beganAt >= since && one.outcome.includes(outcome))
        .map(({ ref }) => idOf(ref)),
    );
  const isRefused = (): boolean => triedThere(begunAt, why).size >= 3;
  for (let count = 0; count < (isSeen ? 3 : 8) && !isRefused(); count++) await orderCreate(world);
  await pass(world, TOLD_WITHIN_MS);
  const wasTold = await isTold();
  hold('I45', wasTold || !isRefused(), () => `${host} refuses each create, without an alarm`, [host]);
  if (wasTold || isSeen) {
    const toldAt = scheduler.now;
    for (let count = 0; count < 4; count++) await orderCreate(world);
    const placed = [...triedThere(toldAt, '')].filter(
      (id) => (inspector.history.instance(id)?.createdAt ?? 0) >= toldAt,
    );
    const isOut = placed.length <= (isSeen ? 0 : 1);
    hold('I45', isOut, () => `${host} refuses each create, and ${placed} were placed there`, [host]);
  }
  await outages.mend();
  if (!wasTold) return;
  const mendedAt = scheduler.now;
  const cordons = await database.store.read.cordons.list();
  if (cordons.some(({ refusals }) => (refusals?.trialAt ?? 0) > mendedAt + LONG_MS)) return;
  await pass(world, LONG_MS);
  const isTried = (): boolean => triedThere(mendedAt, 'done').size > 0;
  for (let count = 0; count < 8 && !isTried(); count++) await orderCreate(world);
  await pass(world, TOLD_WITHIN_MS);
  hold('I45', !(isTried() && (await isTold())), () => `${host} makes machines again, and has an alarm`, [
    host,
  ]);
}

/** I44: machines that cannot write, or be removed, have an alarm. */
async function checkPool(world: EngineWorld, host: string, why: string): Promise<void> {
  const { engine, inspector, database, scheduler } = world;
  const told = new Set((await database.store.read.alarms.list()).map(({ subject }) => subject));
  const isReadOnly = why === READ_ONLY;
  for (const { ref = '', isCopy, power, host: at } of engine.machines()) {
    const row = inspector.history.byRef(ref);
    if (at !== host || isCopy || row === undefined) continue;
    const isShown = isReadOnly || power === 'paused' || engine.driverName !== 'libvirt';
    const isHeld = row.status === 'ONLINE' ? isShown : isReadOnly && row.status === 'DESTROYING';
    if (!isHeld || power === 'destroying' || row.updatedAt > scheduler.now - TOLD_WITHIN_MS) continue;
    const isTold = told.has(row.id) || told.has('default');
    hold('I44', isTold, () => `${row.id} cannot write on ${host}, without an alarm`, [row.id]);
  }
}

function pass({ scheduler }: EngineWorld, ms: number): Promise<void> {
  return scheduler.runUntil(scheduler.now + ms);
}

async function orderCreate(world: EngineWorld): Promise<void> {
  const { clients } = world;
  order(world, clients.chance.pick(clients.tenants), 'create');
  await pass(world, PACE_MS);
}

async function hasAlarm({ database }: EngineWorld, kind: RegExp, subject: RegExp): Promise<boolean> {
  const open = await database.store.read.alarms.list();
  return open.some((one) => kind.test(one.kind) && subject.test(one.subject));
}
