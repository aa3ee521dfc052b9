import { formatUsd } from '../resources/budget.ts';
import type { Plan } from './plan.ts';

/** Why a planned run is not begun, with what to do about it; undefined where it may be. */
export function whyNotAffordable(plan: Plan, acceptsUnknownCost: boolean): string | undefined {
  const { worst_case_usd: usd, max_cost_usd: cap, purchases } = plan;
  const unpriced = purchases.find(
    ({ offer, price_per_hour }) => offer !== undefined && price_per_hour === undefined,
  );
  if (unpriced !== undefined && !acceptsUnknownCost)
    return `the offer ${unpriced.offer} has no usable price, so that no cap on the cost would hold: name another with --offer, or go on without a cap with --accept-unknown-cost (--level read-only is free, and says what is wrong with the price)`;
  if (usd <= cap) return undefined;
  const minutes = plan.max_minutes_within_cap;
  const shorter = minutes === undefined ? '' : ` or --max-minutes ${minutes}`;
  return `this run may cost up to ${formatUsd(usd)}, which is more than --max-cost ${cap.toFixed(2)}: pass --max-cost ${ceilToCent(usd)}${shorter}`;
}

function ceilToCent(usd: number): string {
  return (Math.ceil(usd * 100 - 1e-6) / 100).toFixed(2);
}
