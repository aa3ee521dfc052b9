import type { Draws } from '../../transcript/draws.ts';
import { statusOf } from '../../transcript/exchange.ts';
import { isStillListed } from '../catalog/catalog.ts';
import { buyInstance, destroyAndConfirm } from '../instances/purchase.ts';
import type { Placement } from '../placement.ts';
import type { Instance, Session } from '../session.ts';

/** A cache that lives so long, or half as long, is looked for. */
const LIFETIME_MS = 60_000;
/** If it is filled anew in this time after the first sale, that sale does not show it. */
const SHIFT_MS = 14_000;
/** The sale is at a drawn moment within this time after it. */
const DRAWN_MS = 1500;

/** Where that moment has passed by less than this, the sale is not too late: half a lifetime is longer. */
const LATE_MS = 12_000;

/** When to sell it out again, where a unit is free since `freedAt`. */
function refillAt(draws: Draws, { soldAt, freedAt, now }: { soldAt: number; freedAt: number; now: number }) {
  const least = Math.max(freedAt, now - SHIFT_MS - LATE_MS);
  const rounds = Math.ceil((least - soldAt) / LIFETIME_MS);
  return soldAt + rounds * LIFETIME_MS + SHIFT_MS + draws.fraction('race/refill') * DRAWN_MS;
}

/**
 * Sells the offer out a second time, once one of its instances is gone; every other unit is still taken. A cache of
 * /availability that was filled anew right after the first sale, at `soldAt`, is filled anew right before this one. Returns
 * what was bought.
 */
export async function refill(
  session: Session,
  { placement, path, ...times }: { placement: Placement; path: string; soldAt: number; freedAt: number },
): Promise<Instance[]> {
  const at = refillAt(session.draws, { ...times, now: session.now() });
  session.waitsFor('the moment to buy the freed unit again');
  await session.sleep(Math.max(at - session.now(), 0));
  await session.get('race/refill/before', path);
  const { exchange, instance } = await buyInstance(session, { placement, step: 'race/refill/create' });
  if (instance === undefined) {
    const answer = exchange.answer?.status ?? exchange.failure?.message;
    session.skip(['race/refill/after'], `the create of the freed unit was answered ${answer}`);
    return [];
  }
  if (await isStillListed(session, 'race/refill/after', placement, path))
    await askAgain(session, placement, path);
  return [instance];
}

/** Whether it is listed rightly: the same create shows whether a unit is left, and a read after it whether it is listed still. */
async function askAgain(session: Session, placement: Placement, path: string): Promise<void> {
  const { exchange, instance } = await buyInstance(session, {
    placement,
    step: 'race/refill/create-again',
    isEndedAtOnce: true,
  });
  if (statusOf(exchange) === 409) await session.get('race/refill/after', path);
  if (instance !== undefined) await destroyAndConfirm(session, 'race/refill/again', instance);
}
