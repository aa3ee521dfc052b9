import { operateMarketplace } from '../support/processes/marketplace.ts';
import { brokenPromises, disagreements } from './at-rest.ts';
import { auditBills, type Bills } from './bills.ts';
import type { MarketClient } from './client.ts';
import { wrongDeeds } from './deeds.ts';
import { type Dice, insistently, sleep } from './dice.ts';
import type { Fleet } from './fleet.ts';
import type { Journal } from './journal.ts';
import { type Rows, readRows } from './rows.ts';
import { type Setting, TIMES } from './setting.ts';

/** Until then all must agree: a lease that runs out, a change that is given up, a stop that must last, a sweep. */
const QUIET_WITHIN_MS = 240_000;
const EVERY_MS = 1_000;
const AT_ONCE = 16;
const ENDED: readonly string[] = ['terminated', 'deleting', 'deleted'];

/** After this nothing that was ordered may be carried out any more, with time for a provider on a busy machine. */
const GIVEN_UP_AFTER_MS = 1000 * (TIMES.actionS + TIMES.lifecycleWaitS) + 8_000;

interface Parts {
  setting: Setting;
  fleet: Fleet;
  journal: Journal;
}

/** Waits until the rows and the provider agree; how long that took, null: they never did. */
export async function comeToRest({ setting, journal }: Parts): Promise<number | null> {
  const begun = Date.now();
  for (;;) {
    const rows = await insistently(() => readRows(setting.url));
    const found = disagreements(rows, await setting.truth());
    if (found.length === 0) return Date.now() - begun;
    if (Date.now() - begun > QUIET_WITHIN_MS) {
      for (const finding of found) journal.lose('the rows and the provider do not agree', { finding });
      return null;
    }
    await sleep(EVERY_MS);
  }
}

/** Holds what users were answered against the rows, and what the provider did against what users ordered. */
export async function judgeOrders({ setting, fleet, journal }: Parts): Promise<void> {
  const rows = await readRows(setting.url);
  for (const finding of brokenPromises(rows, fleet.orders, GIVEN_UP_AFTER_MS))
    journal.lose('an answer was not kept', { finding });
  for (const finding of unknownRows(rows, fleet)) journal.lose('a row is nobody’s', { finding });
}

/** Ends all that there is; then the provider may have nothing left. */
export async function clear(
  { setting, fleet, journal }: Parts,
  client: MarketClient,
  dice: Dice,
): Promise<void> {
  const rows = await readRows(setting.url);
  const teams = new Map(setting.teams.map((team) => [team.id, team]));
  const end = async (verb: 'terminate' | 'delete volume', teamId: string, id: string): Promise<void> => {
    const team = teams.get(teamId);
    if (team === undefined) return journal.lose('a row is of no team', { id, teamId });
    const path = verb === 'terminate' ? `/api/deployments/${id}` : `/api/volumes/${id}`;
    const deadline = Date.now() + QUIET_WITHIN_MS;
    let last: unknown;
    while (Date.now() < deadline) {
      const order = fleet.order({ verb, subject: id });
      const answer = await client.send(dice, { team, method: 'DELETE', path }, order);
      if (answer !== null) {
        order.answeredAt = Date.now();
        order.status = answer.status;
      }
      if (answer?.status === 200) return;
      last = answer;
      // An answer that got lost may have ended it, and what has ended cannot be ended again.
      const read = await client.send(dice, { team, method: 'GET', path });
      if (read !== null && ENDED.includes(String(read.body['status']))) return;
      await sleep(EVERY_MS);
    }
    journal.lose('something cannot be ended', { verb, id, last });
  };
  const live = rows.deployments.filter(({ status }) => status === 'running' || status === 'stopped');
  await together(live, ({ teamId, id }) => end('terminate', teamId, id));
  const volumes = rows.volumes.filter(({ status }) => status !== 'deleted' && status !== 'deleting');
  await together(volumes, ({ teamId, volumeId }) => end('delete volume', teamId, volumeId));
  if ((await comeToRest({ setting, fleet, journal })) === null) return;
  const { instances, volumes: disks } = await setting.truth();
  for (const left of [...instances, ...disks])
    journal.lose('everything was ended and something is left', { left });
}

/** The books, once all has ended: as the marketplace audits them, and as the provider's journal says. */
export async function judgeBooks({ setting, fleet, journal }: Parts): Promise<Bills> {
  const rows = await readRows(setting.url);
  const truth = await setting.truth();
  for (const finding of wrongDeeds(truth, rows, fleet.orders, GIVEN_UP_AFTER_MS))
    journal.lose('the provider did what it should not', { finding });
  const bills = auditBills(truth, rows, fleet.orders, GIVEN_UP_AFTER_MS);
  for (const finding of bills.findings) journal.lose('a bill is not right', { finding });
  await operateMarketplace(setting.config, ['verify-ledger']).then(
    (text) => journal.say(text.trim().replaceAll('\n', ' ')),
    (error) => journal.lose('verify-ledger finds fault', { error: String(error) }),
  );
  return bills;
}

/** More rows than users bought: one whose create had no answer may be there. */
function unknownRows({ deployments, volumes }: Rows, { orders }: Fleet): string[] {
  const known = new Set(orders.map(({ subject }) => subject));
  const count = (what: 'create' | 'create volume', ids: readonly string[]): string[] => {
    const unknown = ids.filter((id) => !known.has(id));
    const lost = orders.filter(({ verb, status }) => verb === what && status === null).length;
    if (unknown.length <= lost) return [];
    return [`${unknown.length} rows have no ${what} that was answered, and ${lost} had no answer`];
  };
  return [
    ...count(
      'create',
      deployments.map(({ id }) => id),
    ),
    ...count(
      'create volume',
      volumes.map(({ volumeId }) => volumeId),
    ),
  ];
}

/** Does something with each, several at the same time. */
export async function together<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const next = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}
