import { idOf } from '../../src/orchestrator/model/attempt.ts';
import { hold } from '../kernel/violation.ts';
import { order } from '../orchestrator/workload/commands.ts';
import { REFUSED } from './engine.ts';
import type { EngineWorld } from './world.ts';

const PACE_MS = 20_000;
/** How long what has to be mended may be without an alarm. */
export const TOLD_WITHIN_MS = 120_000;
/** So many creates in a row must be refused alike. */
const IN_A_ROW = 3;
/** Longer than the first pause before a trial. */
const TRIAL_WITHIN_MS = 330_000;

/** Checks that what a person has to mend has an alarm and is not sold, and that it is sold again once it is mended. */
export async function checkOutages(world: EngineWorld): Promise<void> {
  const { host } = world.outages;
  if (host !== undefined) await checkRefusing(world, host);
}

/** I45: a host that has refused three creates alike has an alarm and gets no more than trials, until one succeeds. */
async function checkRefusing(world: EngineWorld, host: string): Promise<void> {
  const { scheduler, inspector, outages, database } = world;
  const begunAt = scheduler.now;
  // A zone of OpenStack is followed by its region.
  const isHost = (name: string): boolean => name.split('@')[0] === host;
  const isTold = () =>
    hasAlarm(world, 'creates_refused', (subject) => isHost(subject.slice('default/'.length)));
  const triedThere = (since: number, outcome: string): Set<string> =>
    new Set(
      inspector.creates
        .filter((one) => isHost(one.host ?? '') && one.beganAt >= since && one.outcome.includes(outcome))
        .map(({ ref }) => idOf(ref)),
    );
  const isRefused = (): boolean => triedThere(begunAt, REFUSED).size >= IN_A_ROW;
  for (let count = 0; count < 8 && !isRefused(); count++) await orderCreate(world);
  await scheduler.runUntil(scheduler.now + TOLD_WITHIN_MS);
  const wasTold = await isTold();
  hold('I45', wasTold || !isRefused(), () => `${host} refuses each create, without an alarm`, [host]);
  if (wasTold) {
    const toldAt = scheduler.now;
    for (let count = 0; count < 4; count++) await orderCreate(world);
    const placed = [...triedThere(toldAt, '')].filter(
      (id) => (inspector.history.instance(id)?.createdAt ?? 0) >= toldAt,
    );
    hold('I45', placed.length <= 1, () => `${host} refuses each create, and ${placed} were placed there`, [
      host,
    ]);
  }
  outages.mend();
  if (!wasTold) return;
  const mendedAt = scheduler.now;
  const out = (await database.store.read.cordons.list()).filter(({ refusals }) => refusals !== null);
  if (out.some(({ refusals }) => (refusals?.trialAt ?? 0) > mendedAt + TRIAL_WITHIN_MS))
    await world.endCordons(out.map(({ id }) => id));
  else await scheduler.runUntil(mendedAt + TRIAL_WITHIN_MS);
  const isTried = (): boolean => triedThere(mendedAt, 'done').size > 0;
  for (let count = 0; count < 8 && !isTried(); count++) await orderCreate(world);
  await scheduler.runUntil(scheduler.now + TOLD_WITHIN_MS);
  hold('I45', !(isTried() && (await isTold())), () => `${host} makes machines again, and has an alarm`, [
    host,
  ]);
}

async function orderCreate(world: EngineWorld): Promise<void> {
  const { clients, scheduler } = world;
  order(world, clients.chance.pick(clients.tenants), 'create');
  await scheduler.runUntil(scheduler.now + PACE_MS);
}

async function hasAlarm(
  { database }: EngineWorld,
  kind: string,
  isOf: (subject: string) => boolean,
): Promise<boolean> {
  const open = await database.store.read.alarms.list();
  return open.some((one) => one.kind === kind && isOf(one.subject));
}
