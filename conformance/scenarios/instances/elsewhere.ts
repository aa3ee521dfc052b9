import { instancePath } from '../../contract/paths.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import { AT_ONCE } from '../capacity/race.ts';
import { isStillListed, lists } from '../catalog/catalog.ts';
import { elsewhereOf, type Placement } from '../placement.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { listInRegions } from './list.ts';
import { buyInstance, destroyAndConfirm, readPlacements } from './purchase.ts';

/** Creates an instance in another region than that of the first, if the cost cap allows it beside what comes after. */
export const elsewhere: Scenario = {
  id: 'elsewhere',
  level: 'full',
  title: 'creates an instance in a second region',
  after: ['create'],
  isBesideFirst: true,
  buys: [{ type: 'instance', offer: 'elsewhere', what: 'an instance in a second region' }],
  async run(session) {
    const first = requirePrimary(session, 'elsewhere');
    if (first === undefined) return;
    const placement = await choose(session, first);
    if (placement === undefined) return;
    const path = `/availability?region=${encodeURIComponent(placement.region)}`;
    // The unfiltered list may name all regions of an offer. What can be deployed there is in the list of the region.
    const there = await session.get('elsewhere/availability-of-region', path);
    if (isSuccess(there) && !lists(there, placement))
      return skip(session, `GET ${path} does not list ${placement.configurationId}`);
    const isBeside = session.holdsInstances;
    const instance = await buy(session, placement, path);
    session.inSecondRegion = instance;
    // What the run holds may be why: the account's quota, or a stock that the regions share.
    if (instance === undefined && isBeside) session.postponed.add('elsewhere');
  },
};

/** Logs in to that instance, and destroys it. */
export const elsewhereEnd: Scenario = {
  id: 'elsewhere-end',
  level: 'full',
  title: 'logs in to the instance in the second region, and destroys it',
  after: ['elsewhere'],
  isBesideFirst: true,
  buys: [],
  async run(session) {
    const { inSecondRegion: instance } = session;
    if (instance === undefined) return;
    session.inSecondRegion = undefined;
    const shown = await observe(session, instance);
    await destroyAndConfirm(session, 'elsewhere/destroy', instance);
    if (shown !== undefined && instance.entry.state === 'gone')
      await session.login('elsewhere/login-gone', shown, 'first');
  },
};

function skip(session: Session, reason: string, capability = 'an offer in a second region'): undefined {
  session.skipForLackOfUnits('elsewhere', reason, capability);
}

async function choose(session: Session, { region }: Instance): Promise<Placement | undefined> {
  const { settings } = session;
  const choices = await readPlacements(session, 'elsewhere/availability');
  const chosen = elsewhereOf(choices, region, settings);
  if (chosen !== undefined && leavesEnough(session, chosen, choices)) return chosen;
  if (chosen !== undefined)
    return skip(
      session,
      `${chosen.configurationId} in ${chosen.region} was not bought: with what comes after it could cost more than --max-cost ${settings.maxCostUsd}`,
      'a second region within --max-cost',
    );
  return skip(
    session,
    settings.region === undefined
      ? `nothing is available in another region than ${region}`
      : '--region names one region',
  );
}

/** Whether the cap also covers what is bought later: the instance that is destroyed early, and a race that was postponed. */
function leavesEnough(session: Session, chosen: Placement, choices: readonly Placement[]): boolean {
  const { race } = session.settings;
  const [cheapest] = choices;
  const raced = choices.find(({ configurationId }) => configurationId === race?.offer) ?? cheapest;
  const count = session.postponed.has('race') ? (race === undefined ? AT_ONCE : race.units + 1) : 0;
  const racers = Array.from({ length: count }, () => raced);
  return session.affords([chosen, cheapest, ...racers].map((one) => one?.pricePerHour));
}

/** A refused offer that is still listed there is asked for once more, as in `create`. */
async function buy(session: Session, placement: Placement, path: string): Promise<Instance | undefined> {
  const step = 'elsewhere/create';
  const asked = await buyInstance(session, { placement, step });
  if (asked.instance !== undefined || statusOf(asked.exchange) !== 409) return asked.instance;
  if (!(await isStillListed(session, 'elsewhere/still-listed', placement, path))) return undefined;
  const again = await buyInstance(session, { placement, step });
  if (again.instance === undefined) await session.get('elsewhere/still-listed', path);
  return again.instance;
}

/** Returns the read that shows it ONLINE. */
async function observe(session: Session, instance: Instance): Promise<JsonObject | undefined> {
  await session.get('elsewhere/read-at-once', instancePath(instance));
  const last = await session.poll(
    'elsewhere/poll',
    instance,
    (status) => status !== 'PROVISIONING' && status !== undefined,
    {
      text: 'the instance in the second region to come ONLINE',
      onTheWay: ['PROVISIONING'],
    },
  );
  await listInRegions(session, 'elsewhere', [instance]);
  await session.get('elsewhere/list', '/instances');
  await session.get('elsewhere/read', instancePath(instance));
  const shown = last && successOf(last);
  if (shown === undefined || stringField(shown, 'status') !== 'ONLINE') return undefined;
  const owner = instance.entry.n;
  await session.login('elsewhere/login', shown, 'first', { owner });
  await session.login('elsewhere/login-second', shown, 'second', { owner });
  const old = session.gone.find((n) => n < owner);
  if (old !== undefined) await session.login('elsewhere/login-foreign', shown, 'foreign', { owner: old });
  return shown;
}
