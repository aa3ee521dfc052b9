import { jsonOf, objectsField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { createBody } from './create-body.ts';
import { type Placement, placements } from './placement.ts';
import type { Scenario } from './scenario.ts';
import type { Instance, Session } from './session.ts';

/** Capacity may go between the read and the create; this many of the cheapest are tried. */
const MOST_TRIED = 3;
const READS_AT_ONCE = 5;

/** Buys the instance that most of the run is about. */
export const create: Scenario = {
  id: 'create',
  level: 'lifecycle',
  title: 'creates an instance of the cheapest offer',
  after: ['catalog'],
  buys: [
    { type: 'instance', offer: 'cheapest', what: 'the instance that is started, stopped and destroyed' },
  ],
  async run(session) {
    const instance = await buy(session);
    if (instance === undefined) return;
    session.primary = instance;
    for (let read = 0; read < READS_AT_ONCE; read++)
      await session.get('create/read-at-once', instancePath(instance));
    await session.get('create/list-at-once', '/instances');
  },
};

async function buy(session: Session): Promise<Instance | undefined> {
  const available = jsonOf(await session.get('create/availability', '/availability'));
  const choices = placements(objectsField(available, 'configurations'), session.settings);
  if (choices.length === 0) {
    session.whyNoPrimary = 'no offer that it may buy is available';
    session.skip(['create/post', 'create/read-at-once', 'create/list-at-once'], session.whyNoPrimary);
  }
  for (const placement of choices.slice(0, MOST_TRIED)) {
    const { exchange, instance } = await ask(session, placement);
    if (instance !== undefined) return instance;
    session.whyNoPrimary = `the create was answered ${exchange.answer?.status ?? exchange.failure?.message}`;
    if (exchange.answer?.status !== 409) break;
  }
  session.skip(
    ['create/read-at-once', 'create/list-at-once'],
    session.whyNoPrimary ?? 'there is no instance',
  );
  return undefined;
}

async function ask(session: Session, placement: Placement) {
  const { entry, exchange } = await session.create({
    type: 'instance',
    step: 'create/post',
    body: (name) => createBody(session, placement, name),
    region: placement.region,
    ...(placement.pricePerHour === undefined ? {} : { pricePerHour: placement.pricePerHour }),
  });
  const id = entry.id;
  const instance: Instance | undefined =
    id === undefined ? undefined : { entry, id, region: placement.region, placement };
  return { exchange, instance };
}
