import { instancePath } from '../../contract/paths.ts';
import type { CreateResult } from '../../resources/resources.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { isStillListed, lists } from '../catalog/catalog.ts';
import {
  buyInstance,
  confirmGone,
  instanceRequest,
  readPlacements,
  toInstance,
} from '../instances/purchase.ts';
import type { Placement } from '../placement.ts';
import type { Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';

/** How many instances are requested at once if the number of units is unknown. */
const AT_ONCE = 3;

/** After this many 404s (judged elsewhere) an instance is given up. */
const MOST_MISSING = 3;

const bought = {
  type: 'instance',
  offer: 'race',
  what: 'one of several created at the same moment',
} as const;

/** Requests several instances at the same moment; with `--race`, one more than there are units. */
export const race: Scenario = {
  id: 'race',
  level: 'full',
  title: 'creates several instances at the same moment',
  after: ['catalog'],
  buys: [bought, bought, bought],
  async run(session) {
    const placement = await choose(session);
    if (placement === undefined) return;
    const wanted = session.settings.race;
    // The account may hold units already. Only as many as exist need to be counted.
    await session.send('race/list', {
      method: 'GET',
      path: '/instances',
      keeps: { isKept: (instance) => holdsUnit(instance, placement), atMost: wanted?.units ?? 0 },
    });
    const made = await session.createTogether(
      Array.from({ length: wanted === undefined ? AT_ONCE : wanted.units + 1 }, () =>
        instanceRequest(session, { placement, step: 'race/create' }),
      ),
    );
    const isRefused = made.some(({ exchange }) => statusOf(exchange) === 409);
    const availability = `/availability?region=${encodeURIComponent(placement.region)}`;
    if (isRefused) {
      await askAgain(session, placement, availability);
      // A sold-out offer must still be listed as an offer.
      await session.get('race/configurations-after-refusal', '/configurations');
    } else
      session.skip(
        ['race/availability-after-refusal', 'race/availability-after-destruction'],
        `none of ${made.length} creates at the same moment was refused`,
        'an offer of known size (--race OFFER=UNITS)',
      );
    const instances = instancesOf(made, placement);
    await liveAndDie(session, instances);
    if (!isRefused) return;
    if (instances.every(({ entry }) => entry.state === 'gone'))
      await untilListed(session, placement, availability);
    else
      session.skip(['race/availability-after-destruction'], 'instances of the race were not seen to be gone');
  },
};

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
  const choices = await readPlacements(
    session,
    'race/availability',
    wanted === undefined ? session.settings : { offer: wanted.offer, region },
  );
  if (choices[0] === undefined)
    session.skip(
      ['race'],
      wanted === undefined
        ? 'no offer that it may buy is available'
        : `the offer ${wanted.offer} of --race is not available`,
    );
  return choices[0];
}

/** If the offer is still listed after a refusal, the same create shows whether a unit has become free. */
async function askAgain(session: Session, placement: Placement, path: string): Promise<void> {
  const step = 'race/availability-after-refusal';
  if (!(await isStillListed(session, step, placement, path))) return;
  const { instance } = await buyInstance(session, {
    placement,
    step: 'race/create-again',
    isEndedAtOnce: true,
  });
  await session.get(step, path);
  if (instance === undefined) return;
  await session.delete('race/again/delete', instancePath(instance));
  await confirmGone(session, 'race/again', instance);
}

function instancesOf(made: readonly CreateResult[], placement: Placement): Instance[] {
  return made.flatMap(({ entry }) => toInstance(entry, placement) ?? []);
}

async function liveAndDie(session: Session, instances: readonly Instance[]): Promise<void> {
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
    const isOnline =
      stringField(shown, 'status') === 'ONLINE' && stringField(shown, 'public_ip') !== undefined;
    if (shown !== undefined && isOnline) await logIn(session, shown);
  }
  const deleted: Exchange[] = [];
  for (const instance of instances)
    deleted.push(await session.delete('race/destroy/delete', instancePath(instance)));
  for (const [index, instance] of instances.entries())
    await confirmGone(session, 'race/destroy', instance, deleted[index]?.endedAt);
}

/** Retries a failed login once, so that a sporadic failure is visible. */
async function logIn(session: Session, shown: JsonObject): Promise<void> {
  const { rung } = await session.login('race/login', shown, 'first');
  if (rung === 'done' || rung === 'execute') return;
  await session.sleep(Math.min(session.settings.pollIntervalMs, 5000));
  await session.login('race/login', shown, 'first');
}

/** A unit that becomes free is listed again within this time (docs/decisions/0010). */
export const PUT_BACK_MS = 75_000;

async function untilListed(session: Session, placement: Placement, path: string): Promise<void> {
  const startedAt = session.now();
  session.waitsFor(`${placement.configurationId} to be listed again`);
  for (;;) {
    const exchange = await session.get('race/availability-after-destruction', path);
    if (isSuccess(exchange) && lists(exchange, placement)) return;
    if (session.now() - startedAt > Math.min(PUT_BACK_MS, session.settings.readyTimeoutMs)) return;
    await session.sleep(session.settings.pollIntervalMs);
  }
}
