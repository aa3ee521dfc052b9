import { instancePath } from '../../contract/paths.ts';
import { BudgetError } from '../../resources/budget.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isBeyondQuota, isSuccess, listOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { isStillListed, lists } from '../catalog/catalog.ts';
import { listInRegions } from '../instances/list.ts';
import {
  awaitPlacements,
  buyInstance,
  confirmGone,
  destroyAndConfirm,
  instanceRequest,
  PUT_BACK_MS,
  placementsNow,
  toInstance,
} from '../instances/purchase.ts';
import { readSideBySide } from '../instances/side-by-side.ts';
import type { Placement } from '../placement.ts';
import type { OnlineInstance, Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { refill } from './refill.ts';

/** How many instances are requested at once if the number of units is unknown. */
export const AT_ONCE = 3;

/** After this many 404s (judged elsewhere) an instance is given up. */
const MOST_MISSING = 3;

/** `Within seconds`, and the time of the request. */
const LISTED_MS = 10_500;

const bought = {
  type: 'instance',
  offer: 'race',
  what: 'one of several created at the same moment',
} as const;

/** A race that is under way. */
export interface Racing {
  placement: Placement;
  /** The path of the list that shows whether the offer is sold out. */
  availability: string;
  /** How many of them must be accepted at least. */
  free: number;
  instances: readonly Instance[];
  /** The creates that were answered 409. */
  refused: readonly Exchange[];
  /** When the last create was answered. */
  madeAt: number;
  /** The instances that came ONLINE. */
  online: readonly OnlineInstance[];
  /** When the first of them was seen to be gone. */
  freedAt?: number;
}

/** The race of a run that is under way. */
const races = new WeakMap<Session, Racing>();

/** Requests several instances at the same moment; with `--race`, one more than there are units. */
export const raceCreate: Scenario = {
  id: 'race-create',
  level: 'full',
  title: 'creates several instances at the same moment',
  after: ['catalog'],
  isBesideFirst: true,
  buys: [bought, bought, bought],
  async run(session) {
    const placement = await choose(session);
    if (placement === undefined) return;
    const isBeside = session.holdsInstances;
    const racing = await sellOut(session, placement);
    races.set(session, racing);
    const isShort = racing.instances.length < racing.free || racing.refused.some(isBeyondQuota);
    if (isBeside && (isShort || (await isListedWrongly(session, racing)))) {
      // What the run holds may be why: a unit of a shared stock, or of the account's quota.
      races.delete(session);
      await die(session, racing.instances);
      session.postponed.add('race');
      return;
    }
    if (racing.refused.length === 0)
      return session.skip(
        ['race/availability-after-refusal', 'race/availability-after-destruction', 'race/refill'],
        'none of the creates at the same moment was refused',
        'an offer of known size (--race OFFER=UNITS)',
      );
    if (!isBeside) await isListedWrongly(session, racing);
    // A sold-out offer must still be listed as an offer.
    await session.get('race/configurations-after-refusal', '/configurations');
  },
};

/** Waits for the instances of the race, and destroys the first, whose unit is sold again later. */
export const raceOnline: Scenario = {
  id: 'race-online',
  level: 'full',
  title: 'logs in to the instances that were created at the same moment',
  after: ['race-create'],
  isBesideFirst: true,
  buys: [],
  async run(session) {
    const racing = races.get(session);
    if (racing === undefined) return;
    const { placement, instances, madeAt } = racing;
    const failed: Instance[] = [];
    racing.online = await live(session, instances, failed);
    await readSideBySide(session, 'race', aliveIn(session, instances));
    await tryForeignKeys(session, racing.online);
    if (failed.length === 1) await tryOnceMore(session, placement, failed);
    // A list may take ten seconds to show a new instance.
    await session.sleep(Math.max(madeAt + LISTED_MS - session.now(), 0));
    await session.get('race/list-all', '/instances');
    for (const instance of instances.filter(isLeft)) await session.get('race/read', instancePath(instance));
    await die(session, instances.slice(0, 1).filter(isLeft));
    racing.freedAt = session.now();
  },
};

/** Sells the freed unit again, and destroys the instances of the race. */
export const race: Scenario = {
  id: 'race',
  level: 'full',
  title: 'buys a unit of the race again, and destroys its instances',
  after: ['race-online'],
  buys: [],
  async run(session) {
    const racing = races.get(session);
    if (racing === undefined) return;
    races.delete(session);
    const { placement, availability: path, instances, online, freedAt, madeAt: soldAt } = racing;
    const isRefused = racing.refused.length > 0;
    await listInRegions(session, 'race', aliveIn(session, instances));
    const again =
      isRefused && freedAt !== undefined && instances[0]?.entry.state === 'gone'
        ? await refill(session, { placement, path, soldAt, freedAt }).catch(beyondBudget(session))
        : [];
    await die(session, [...again, ...instances].filter(isLeft));
    const gone = online.filter(({ instance }) => instance.entry.state === 'gone');
    await Promise.all(gone.map(({ shown }) => session.login('race/login-gone', shown, 'first')));
    if (!isRefused) return;
    if (instances.every(({ entry }) => entry.state === 'gone')) await untilListed(session, placement, path);
    else
      session.skip(['race/availability-after-destruction'], 'instances of the race were not seen to be gone');
  },
};

function beyondBudget(session: Session) {
  return (error: unknown): [] => {
    if (!(error instanceof BudgetError)) throw error;
    session.skip(['race/refill'], error.message);
    return [];
  };
}

async function sellOut(session: Session, placement: Placement): Promise<Racing> {
  const wanted = session.settings.race;
  // The account may hold units already. Only as many as exist need to be counted.
  const list = await session.send('race/list', {
    method: 'GET',
    path: '/instances',
    keeps: { isKept: (instance) => holdsUnit(instance, placement), atMost: wanted?.units ?? 0 },
  });
  const held = (listOf(list) ?? []).filter((instance) => holdsUnit(instance, placement)).length;
  const availability = `/availability?region=${encodeURIComponent(placement.region)}`;
  await session.get('race/availability-before', availability);
  const made = await session.createTogether(requestsOf(session, placement));
  return {
    placement,
    availability,
    free: wanted === undefined ? 1 : wanted.units - held,
    instances: made.flatMap(({ entry }) => toInstance(entry, placement) ?? []),
    refused: made.map(({ exchange }) => exchange).filter((exchange) => statusOf(exchange) === 409),
    madeAt: Math.max(...made.map(({ exchange }) => exchange.endedAt)),
    online: [],
  };
}

function requestsOf(session: Session, placement: Placement) {
  const { race: wanted } = session.settings;
  return Array.from({ length: wanted === undefined ? AT_ONCE : wanted.units + 1 }, () =>
    instanceRequest(session, { placement, step: 'race/create' }),
  );
}

/** Whether a listed instance holds a unit of that offer there. */
export function holdsUnit(
  instance: JsonObject,
  { configurationId, region }: { configurationId: string | undefined; region: string | undefined },
): boolean {
  return (
    instance['status'] !== 'DESTROYED' &&
    stringField(instance, 'configuration_id') === configurationId &&
    stringField(instance, 'region') === region
  );
}

async function choose(session: Session): Promise<Placement | undefined> {
  const { race: wanted, region } = session.settings;
  const [placement] = await placementsNow(
    session,
    'race/availability',
    wanted === undefined ? session.settings : { offer: wanted.offer, region },
  );
  const later = [session.primary?.placement.pricePerHour];
  const isDear = (one: Placement): boolean =>
    !session.affords([...requestsOf(session, one).map(({ pricePerHour }) => pricePerHour), ...later]);
  if (placement !== undefined && !(session.holdsInstances && isDear(placement))) return placement;
  session.skipForLackOfUnits(
    'race',
    wanted === undefined
      ? 'no offer that it may buy is available'
      : `the offer ${wanted.offer} of --race is not available`,
  );
  return undefined;
}

/**
 * If the offer is still listed after a refusal, the same create shows whether a unit has become free. Returns whether it is
 * refused again, and listed even after that.
 */
async function isListedWrongly(session: Session, racing: Racing): Promise<boolean> {
  const { placement, availability: path, refused } = racing;
  const step = 'race/availability-after-refusal';
  if (refused.length === 0 || !(await isStillListed(session, step, placement, path))) return false;
  const { instance } = await buyInstance(session, {
    placement,
    step: 'race/create-again',
    isEndedAtOnce: true,
  });
  const read = await session.get(step, path);
  if (instance === undefined) return lists(read, placement);
  await destroyAndConfirm(session, 'race/again', instance);
  return false;
}

/** A machine may fail for a reason of its own. If one did, another takes its place, beside the rest. */
async function tryOnceMore(
  session: Session,
  { configurationId, region }: Placement,
  failed: readonly Instance[],
): Promise<void> {
  await die(session, failed);
  const wanted = { offer: configurationId, region };
  const [placement] = await awaitPlacements(session, 'race/repeat/availability', wanted);
  if (placement === undefined) return;
  const { instance } = await buyInstance(session, { placement, step: 'race/repeat/create' });
  if (instance === undefined) return;
  await live(session, [instance]);
  await die(session, [instance]);
}

/** Waits for each to boot, and logs in. Returns the reads that show them ONLINE; adds to `failed` what reads ERROR. */
async function live(
  session: Session,
  instances: readonly Instance[],
  failed: Instance[] = [],
): Promise<OnlineInstance[]> {
  const online: OnlineInstance[] = [];
  for (const instance of instances) {
    let missing = 0;
    const isOver = (status: string | undefined) => {
      if (status === '404') missing++;
      return missing >= MOST_MISSING || !['PROVISIONING', '404', undefined].includes(status);
    };
    const last = await session.poll('race/poll', instance, isOver, {
      text: `${instance.entry.name} to come ONLINE`,
      onTheWay: ['PROVISIONING', '404'],
    });
    const shown = last === undefined ? undefined : successOf(last);
    if (stringField(shown, 'status') === 'ERROR' && stringField(shown, 'error')) failed.push(instance);
    if (shown === undefined || stringField(shown, 'status') !== 'ONLINE') continue;
    if (stringField(shown, 'public_ip') === undefined) continue;
    if (await logIn(session, shown))
      await session.login('race/login-second', shown, 'second', { owner: instance.entry.n });
    online.push({ instance, shown });
  }
  return online;
}

/** Tries the keys of the last instances that are gone, and of one that booted at the same time. */
async function tryForeignKeys(session: Session, online: readonly OnlineInstance[]): Promise<void> {
  const [first, second] = online;
  if (first === undefined) return;
  const owners = [...session.gone.slice(-3), ...(second ? [second.instance.entry.n] : [])];
  for (const owner of owners) await session.login('race/login-foreign', first.shown, 'foreign', { owner });
}

/** What lives of the race, and beside it. */
function aliveIn({ inSecondRegion, primary }: Session, instances: readonly Instance[]): Instance[] {
  return [...instances, inSecondRegion, primary].filter((one) => one !== undefined).filter(isLeft);
}

/** Whether it is not known to be destroyed. */
function isLeft({ entry }: Instance): boolean {
  return entry.state !== 'gone';
}

async function die(session: Session, instances: readonly Instance[]): Promise<void> {
  const deleted: Exchange[] = [];
  for (const instance of instances)
    deleted.push(await session.delete('race/destroy/delete', instancePath(instance)));
  for (const [index, instance] of instances.entries())
    await confirmGone(session, 'race/destroy', instance, deleted[index]?.endedAt);
}

/** Retries a failed login once, so that a sporadic failure is visible. Returns whether the first succeeded. */
async function logIn(session: Session, shown: JsonObject): Promise<boolean> {
  const { rung } = await session.login('race/login', shown, 'first');
  if (rung === 'done' || rung === 'execute') return true;
  await session.sleep(Math.min(session.settings.pollIntervalMs, 5000));
  await session.login('race/login', shown, 'first');
  return false;
}

async function untilListed(session: Session, placement: Placement, path: string): Promise<void> {
  const startedAt = session.now();
  session.waitsFor(`${placement.configurationId} to be listed again`);
  for (;;) {
    const exchange = await session.get('race/availability-after-destruction', path);
    if (isSuccess(exchange) && lists(exchange, placement)) return;
    if (session.now() - startedAt > PUT_BACK_MS) return;
    await session.sleep(session.settings.pollIntervalMs);
  }
}
