import type { Exchange } from '../transcript/records.ts';
import { isSuccess, jsonOf, objectsField, textsField } from '../wire/json.ts';
import type { Session } from './session.ts';

/** An offer, where it is sold. */
export interface Place {
  configurationId: string;
  region: string;
}

/** `Within seconds`: what is listed for longer than this after it was lost is listed wrongly. */
const FRESH_MS = 10_000;
const MOST_OFTEN_MS = 2000;

/** Whether an offer is listed as available in a region, in an answer of /configurations or /availability. */
export function lists(exchange: Exchange, { configurationId, region }: Place): boolean {
  return objectsField(jsonOf(exchange), 'configurations').some(
    (offer) =>
      offer['id'] === configurationId &&
      offer['available'] === true &&
      textsField(offer, 'regions').includes(region),
  );
}

/** Reads /availability until it lists the offer no more, for some seconds at the most. Says whether it lists it still. */
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
