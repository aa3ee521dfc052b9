import { formatUsd } from '../../resources/budget.ts';
import type { Draws } from '../../transcript/draws.ts';
import type { MonitorConfig, ProviderConfig } from '../config.ts';
import { exponential } from '../moments.ts';
import type { Priced } from '../records.ts';

const MS_PER_MINUTE = 60_000;
/** What no user of a marketplace may end earlier. */
const SHORTEST_USE_MINUTES = 20;
/** For the catalogue and the drawn pause before the create. */
const BEFORE_MINUTES = 8;
/** For a stop, a start and the end. */
const RESERVE_MINUTES = 15;
/** The share of machines of the cheapest offer; the others are of a drawn one. */
const CHEAPEST_SHARE = 0.5;

/** What a machine probe rents, and for how long at most. */
export interface Rental {
  offer: string;
  region: string;
  /** USD. The run buys nothing that could cost more in the worst case. */
  maxCostUsd: number;
  maxMinutes: number;
  /** How long the machine is used. */
  useMs: number;
  /** Kept for what follows the use. */
  reserveMs: number;
  isPaused: boolean;
}

/** Draws what to rent within `leftUsd`. */
export function drawRental(
  { machines, ready_timeout_s: readyTimeoutS }: MonitorConfig,
  provider: ProviderConfig,
  offers: readonly Priced[],
  leftUsd: number,
  draws: Draws,
): Rental | { why: string } {
  const readyMinutes = readyTimeoutS / 60;
  const wanted = offers.filter(
    ({ offer, region }) =>
      (provider.offers?.includes(offer) ?? true) && (provider.regions?.includes(region) ?? true),
  );
  const [cheapest] = wanted;
  if (cheapest === undefined) return { why: 'no offer that it may buy is available' };
  const longest = ({ pricePerHour }: Priced): number =>
    pricePerHour === 0 ? Number.POSITIVE_INFINITY : (leftUsd / pricePerHour) * 60 - readyMinutes;
  const aroundMinutes = readyMinutes + BEFORE_MINUTES + RESERVE_MINUTES;
  const affordable = wanted.filter((offer) => longest(offer) >= SHORTEST_USE_MINUTES + aroundMinutes);
  const isCheapest = draws.fraction('cheapest') < CHEAPEST_SHARE;
  const chosen = isCheapest
    ? affordable[0]
    : affordable[Math.floor(draws.fraction('offer') * affordable.length)];
  if (chosen === undefined)
    return {
      why: `the cheapest offer is ${cheapest.offer} for ${formatUsd(cheapest.pricePerHour)} an hour, and of the day's budget ${formatUsd(leftUsd)} is left`,
    };
  const drawn = SHORTEST_USE_MINUTES + exponential(draws.fraction('use'), machines.mean_extra_minutes);
  const maxMinutes = Math.min(Math.min(drawn, machines.longest_use_minutes) + aroundMinutes, longest(chosen));
  const useMinutes = maxMinutes - aroundMinutes;
  return {
    offer: chosen.offer,
    region: chosen.region,
    maxCostUsd: leftUsd,
    maxMinutes,
    useMs: Math.floor(useMinutes * MS_PER_MINUTE),
    reserveMs: RESERVE_MINUTES * MS_PER_MINUTE,
    isPaused: draws.fraction('stop') < machines.stopped_share,
  };
}

/** The mean of the gaps between machines, in hours: as often as the budget allows. */
export function machineGapHours(
  { machines }: MonitorConfig,
  budgetUsdPerDay: number,
  usdEach: number,
): number {
  if (machines.mean_hours !== undefined) return machines.mean_hours;
  return Math.max(machines.least_hours, (24 * usdEach) / budgetUsdPerDay);
}
