import { objectsField, stringsField } from '../../text/json.ts';
import { isSuccess, jsonOf, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { inDrawnOrder } from '../drawn-order.ts';
import type { Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';
import { offersOf, pathIn, regionPaths, UNKNOWN_REGION } from './regions.ts';

const INSTANCE_TYPES = ['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER'];

/**
 * Reads the offers. Both unfiltered lists are read in pairs, three times, around all other reads: a sale in between
 * explains a difference in one pair, but not in all three.
 */
export const catalog: Scenario = {
  id: 'catalog',
  level: 'read-only',
  title: 'reads the offers, what is available, and the volume locations',
  after: ['token'],
  buys: [],
  async run(session) {
    await readBoth(session);
    await readEach(
      session,
      'catalog/of-type',
      INSTANCE_TYPES.map((type) => `/configurations?instance_type=${type}`),
    );
    await readLocations(session);
    await readBoth(session);
    const ofRegions = regionPaths('catalog/of-region', session);
    await readEach(session, 'catalog/of-region', ofRegions);
    if (ofRegions.length === 0) session.skip(['catalog/of-region'], 'no offer names a region');
    await session.get('catalog/unknown-region', pathIn('/availability', UNKNOWN_REGION));
    await readBoth(session);
  },
};

/** Reads each path, in a drawn order. */
export async function readEach(
  session: Session,
  step: 'catalog/of-type' | 'catalog/of-region' | 'list/of-region',
  paths: readonly string[],
): Promise<void> {
  const reads = paths.map((path) => ({ step, method: 'GET', path }));
  for (const { path } of inDrawnOrder(session.draws, step, reads)) await session.get(step, path);
}

async function readBoth(session: Session): Promise<void> {
  const configurations = await session.get('catalog/configurations', '/configurations');
  const availability = await session.get('catalog/availability', '/availability');
  if (isSuccess(configurations)) session.configurations = offersOf(configurations);
  if (isSuccess(availability)) session.availability = offersOf(availability);
}

/** The target has the storage tier if it lists locations. */
async function readLocations(session: Session): Promise<void> {
  const probe = await session.get('catalog/storage-tier', '/volumes/locations');
  const status = statusOf(probe) ?? 0;
  if ([404, 405, 501].includes(status)) {
    const steps = ['catalog/locations', 'unknown/volume'];
    return session.skip(steps, `GET /volumes/locations answered ${status}`, 'storage tier');
  }
  const read = await session.get('catalog/locations', '/volumes/locations');
  session.locations = objectsField(jsonOf(read), 'locations');
}

/** An offer in one of its regions. */
export interface Place {
  configurationId: string;
  region: string;
}

/** `Within seconds`: an offer must not be listed longer than this after its last unit was sold. */
const FRESH_MS = 10_000;
const MOST_OFTEN_MS = 2000;

/** Whether an offer is listed as available in a region, in an answer of /configurations or /availability. */
export function lists(exchange: Exchange, { configurationId, region }: Place): boolean {
  return offersOf(exchange).some(
    (offer) =>
      offer['id'] === configurationId &&
      offer['available'] === true &&
      stringsField(offer, 'regions').includes(region),
  );
}

/** Reads /availability until the offer is gone, for some seconds at most. Returns whether it is still listed. */
export async function isStillListed(
  session: Session,
  step: string,
  place: Place,
  path = '/availability',
): Promise<boolean> {
  const startedAt = session.now();
  for (;;) {
    const exchange = await session.get(step, path);
    if (isSuccess(exchange) && !lists(exchange, place)) return false;
    if (session.now() - startedAt >= FRESH_MS) return isSuccess(exchange);
    await session.sleep(Math.min(session.settings.pollIntervalMs, MOST_OFTEN_MS));
  }
}
