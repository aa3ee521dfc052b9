import type { Clock } from '../../http/clock.ts';
import { objectsField, stringsField } from '../../text/json.ts';
import { answerOf, jsonOf, statusOf } from '../../transcript/exchange.ts';
import { buyInstance } from '../instances/purchase.ts';
import { type Placement, placements } from '../placement.ts';
import type { Instance, Session } from '../session.ts';
import type { Pace } from './pace.ts';

const MOST_TRIED = 3;
/** How long a user waits before another order, after one that was refused for lack of capacity. */
const AGAIN_MS = [30_000, 120_000] as const;

/**
 * Orders a machine as a marketplace does: reads the availability in the region of the offer right before the create. Returns the instance, or why none was created.
 */
export async function order(session: Session, pace: Pace): Promise<Instance | string> {
  let why = 'no offer that it may buy is available';
  for (const placement of choices(session).slice(0, MOST_TRIED)) {
    if (!(await isOffered(session, placement))) continue;
    const { exchange, instance } = await buyInstance(session, {
      placement,
      step: 'create/post',
      extra: imageOf(placement, pace),
    });
    if (instance !== undefined) return instance;
    why = `the create was answered ${answerOf(exchange)}`;
    if (statusOf(exchange) !== 409) break;
    await session.sleep(pace.between(...AGAIN_MS));
  }
  return why;
}

/** The cheapest first; in drawn order where the price is the same, such as in other regions. */
function choices({ availability, settings, draws }: Session): Placement[] {
  const priceOf = ({ pricePerHour }: Placement): number => pricePerHour ?? Number.POSITIVE_INFINITY;
  return draws
    .shuffled('placements', placements(availability, settings))
    .toSorted((a, b) => priceOf(a) - priceOf(b));
}

async function isOffered(session: Session, { configurationId, region }: Placement): Promise<boolean> {
  const read = await session.get('catalog/of-region', `/availability?region=${encodeURIComponent(region)}`);
  const offers = objectsField(jsonOf(read), 'configurations');
  return placements(offers, { offer: configurationId, region }).length > 0;
}

/** A marketplace names the image that its user chose, if the offer lists any. */
function imageOf({ offer }: Placement, pace: Pace): { operating_system_image?: string } {
  const image = pace.pick(stringsField(offer, 'os_options').filter((option) => !/windows/i.test(option)));
  return image === undefined ? {} : { operating_system_image: image };
}

/** A marketplace looks for the machine of a create without an answer this long, at pauses that double up to the longest. */
const SEARCHED_FOR_MS = 180_000;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;

/** The pauses before a marketplace's searches, as `Resources` takes them. */
export function searchesLikeMarketplace(
  clock: Clock,
  signal: AbortSignal,
): (count: number) => Promise<boolean> {
  let since = 0;
  return async (count) => {
    if (count === 1) since = clock.now();
    else if (clock.now() - since >= SEARCHED_FOR_MS) return false;
    await clock.sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(count - 2, 0)), signal);
    return true;
  };
}
