import { instancePath } from '../../contract/paths.ts';
import { BudgetError } from '../../resources/budget.ts';
import { type JsonObject, objectsField, stringsField } from '../../text/json.ts';
import { jsonOf } from '../../transcript/exchange.ts';
import { lists } from '../catalog/catalog.ts';
import { buyInstance, confirmGone } from '../instances/purchase.ts';
import { type Placement, placements } from '../placement.ts';
import type { Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';

/** Requests what is unavailable: a sold-out offer, and an offer in a region where it has no capacity. */
export const soldOut: Scenario = {
  id: 'sold-out',
  level: 'lifecycle',
  title: 'asks for an offer that is sold out',
  after: ['catalog'],
  buys: [],
  async run(session) {
    await askTwice(session, {
      step: 'sold-out/create',
      capability: 'a sold-out offer',
      choose: chooseUnavailable,
    });
    await askTwice(session, {
      step: 'sold-out/drained/create',
      capability: 'a drained region of an offer that is sold elsewhere',
      choose: chooseDrained,
    });
  },
};

interface Ask {
  step: string;
  /** The capability that the target needs for this test. */
  capability: string;
  /** Reads the offers and chooses something unavailable, or returns why that is not possible. */
  choose: (session: Session) => Promise<Placement | string>;
}

/** A unit may become free between the read and the create, so only two successful creates count. */
async function askTwice(session: Session, { step, capability, choose }: Ask): Promise<void> {
  for (let round = 1; round <= 2; round++) {
    const placement = await choose(session);
    if (typeof placement === 'string') {
      if (round === 1) session.skip([step], placement, capability);
      return;
    }
    const instance = await buy(session, { placement, step });
    await session.get('sold-out/availability', '/availability');
    if (instance === undefined) return;
    await session.delete('sold-out/destroy/delete', instancePath(instance));
    await confirmGone(session, 'sold-out/destroy', instance);
  }
}

/** The create must be refused, and may cost too much to risk that it is not. */
async function buy(
  session: Session,
  { placement, step }: { placement: Placement; step: string },
): Promise<Instance | undefined> {
  try {
    return (await buyInstance(session, { placement, step, isEndedAtOnce: true })).instance;
  } catch (error) {
    if (!(error instanceof BudgetError)) throw error;
    session.skip([step], `if it were accepted, ${error.message}`, 'a sold-out offer within --max-cost');
    return undefined;
  }
}

async function chooseUnavailable(session: Session): Promise<Placement | string> {
  const listed = await offersAt(session, 'sold-out/configurations', '/configurations');
  const unavailable = listed.filter((offer) => offer['available'] === false);
  const placement = cheapest(unavailable);
  if (placement !== undefined) return placement;
  return unavailable.length === 0
    ? `all ${listed.length} offers are available`
    : `none of the ${unavailable.length} offers that are not available names a region`;
}

/** An offer that two reads of /availability list, but not in this region. */
async function chooseDrained(session: Session): Promise<Placement | string> {
  const listed = await offersAt(session, 'sold-out/drained/configurations', '/configurations');
  const reads = [
    await session.get('sold-out/drained/availability', '/availability'),
    await session.get('sold-out/drained/availability', '/availability'),
  ];
  const drained = listed.map((offer) => {
    const configurationId = String(offer['id']);
    const regions = stringsField(offer, 'regions');
    const isListed = (region: string, read: (typeof reads)[number]) =>
      lists(read, { configurationId, region });
    const isSold = reads.every((read) => regions.some((region) => isListed(region, read)));
    return {
      ...offer,
      regions: isSold ? regions.filter((region) => !reads.some((read) => isListed(region, read))) : [],
    };
  });
  return cheapest(drained) ?? `every offer that is available is so in each of its regions`;
}

async function offersAt(session: Session, step: string, path: string): Promise<JsonObject[]> {
  return objectsField(jsonOf(await session.get(step, path)), 'configurations');
}

/** The cheapest placement, in case the target accepts the create. */
function cheapest(offers: readonly JsonObject[]): Placement | undefined {
  return placements(offers.map((offer) => ({ ...offer, available: true })))[0];
}
