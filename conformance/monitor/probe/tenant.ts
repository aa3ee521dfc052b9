import type { Tenant } from '../../scenarios/plain/rental.ts';
import type { Instance, Session } from '../../scenarios/session.ts';
import type { JsonObject } from '../../text/json.ts';
import { exponential } from '../moments.ts';
import { type Markers, searchAndLeave } from './remnants.ts';

const MS_PER_HOUR = 3_600_000;
/** A login that failed is repeated after this time: one may be the network's. */
const REPEAT_AFTER_MS = 60_000;
const SHORTEST_MEAN_MS = 2 * 60_000;
/** Logins of one use, on average. */
const LOGINS = 5;

/** The steps of the logins at drawn moments. */
export const VISIT = 'stay/login';
export const VISIT_AGAIN = 'stay/login-again';

export interface TenantParts {
  useMs: number;
  isPaused: boolean;
  /** The time that the run keeps for the end of the machine, in milliseconds. */
  reserveMs: number;
  wall: () => number;
  /** The highest price that a read of the instance showed, by its id. */
  priceOf: (id: string) => number | undefined;
  markers: Markers;
  /** Stores a marker before it is written. */
  onMarker: (marker: string) => void;
}

/**
 * A tenant who looks for remnants of earlier machines, leaves a marker, and logs in at drawn moments. The machine's life
 * ends early once its price would use up the budget.
 */
export function monitorTenant(parts: TenantParts): Tenant {
  let hasSearched = false;
  let visits = 0;
  return {
    useMs: parts.useMs,
    isPaused: parts.isPaused,
    mayLiveMs: (session, instance) => affordableMs(session, instance, parts),
    async visit(session, { shown }, signal) {
      try {
        if (!hasSearched) {
          hasSearched = true;
          await searchAndLeave(session, shown, parts);
        }
        const mean = Math.max(parts.useMs / LOGINS, SHORTEST_MEAN_MS);
        for (;;) {
          const gapMs = exponential(session.draws.fraction(`stay/${++visits}`), mean);
          await session.sleep(Math.ceil(gapMs), signal);
          await logIn(session, shown, signal);
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}

/** Logs in, and once more if that fails. */
async function logIn(session: Session, shown: JsonObject, signal: AbortSignal): Promise<void> {
  const { rung } = await session.login(VISIT, shown, 'first');
  if (rung === 'done' || rung === 'execute') return;
  await session.sleep(REPEAT_AFTER_MS, signal);
  await session.login(VISIT_AGAIN, shown, 'first');
}

/** How much longer the machine may live at the highest price that it showed, which counts from its create. */
function affordableMs({ settings, ledger }: Session, { entry, id }: Instance, parts: TenantParts): number {
  const price = parts.priceOf(id);
  if (price !== undefined && price > (entry.pricePerHour ?? 0)) ledger.made(entry, id, price);
  if (entry.pricePerHour === undefined || entry.pricePerHour === 0) return Number.POSITIVE_INFINITY;
  const lifeMs = (settings.maxCostUsd / entry.pricePerHour) * MS_PER_HOUR;
  return entry.intendedAt + Math.floor(lifeMs) - parts.reserveMs - parts.wall();
}
