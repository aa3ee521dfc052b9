import { jsonOf, objectsField, textsField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { buyInstance } from './buy-instance.ts';
import { confirmGone } from './destroy-instance.ts';
import { placements } from './placement.ts';
import type { Scenario } from './scenario.ts';

/** Asks for an instance of an offer that is listed as unavailable. */
export const soldOut: Scenario = {
  id: 'sold-out',
  level: 'lifecycle',
  title: 'asks for an offer that is sold out',
  after: ['catalog'],
  buys: [],
  async run(session) {
    const listed = objectsField(
      jsonOf(await session.get('sold-out/configurations', '/configurations')),
      'configurations',
    );
    const unavailable = listed.filter((offer) => offer['available'] === false);
    // As if they could be bought: the cheapest is asked for, lest the refusal fail to come.
    const [placement] = placements(unavailable.map((offer) => ({ ...offer, available: true })));
    if (placement === undefined) {
      const [offer] = unavailable;
      const reason =
        offer === undefined
          ? `all ${listed.length} offers are available`
          : `none of the ${unavailable.length} offers that are not available names a region`;
      return session.skip(['sold-out/create'], reason, 'a sold-out offer');
    }
    const { instance } = await buyInstance(session, {
      ...{ placement, step: 'sold-out/create', isToBeRefused: true },
    });
    await session.get('sold-out/availability', '/availability');
    if (instance === undefined) return;
    await session.delete('sold-out/destroy/delete', instancePath(instance));
    await confirmGone(session, 'sold-out/destroy', instance);
  },
};

/** Whether an offer is listed as available in a region, in an answer of /configurations or /availability. */
export function lists(
  exchange: Parameters<typeof jsonOf>[0],
  { configurationId, region }: { configurationId: string; region: string },
): boolean {
  return objectsField(jsonOf(exchange), 'configurations').some(
    (offer) =>
      offer['id'] === configurationId &&
      offer['available'] === true &&
      textsField(offer, 'regions').includes(region),
  );
}
