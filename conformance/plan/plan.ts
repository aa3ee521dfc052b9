import type { Check } from '../checks/check.ts';
import { formatUsd, worstCaseUsd } from '../resources/budget.ts';
import { type Placement, placements } from '../scenarios/placement.ts';
import type { Purchase, Scenario } from '../scenarios/scenario.ts';
import type { JsonObject } from '../text/json.ts';
import { includes, type Level, type RunSettings } from '../transcript/records.ts';

const MS_PER_MINUTE = 60_000;
/** O: Limits: the typical target for a machine to come ONLINE is under five minutes. */
const TYPICAL_BOOT_MINUTES = 5;
const TYPICAL_POLLS = 4;

/** What a run would do, what it would create, and what that could cost. */
export interface Plan {
  level: Level;
  scenarios: readonly { id: string; title: string; buys: number }[];
  checks: readonly string[];
  purchases: readonly PlannedPurchase[];
  minutes: { typical: number; worst: number };
  /** USD, without resources of unknown price. */
  worst_case_usd: number;
  max_cost_usd: number;
  /** The longest `--max-minutes` whose worst case is within the cap; absent where it already is, or cannot be. */
  max_minutes_within_cap?: number;
  /** How many purchases have no price. The price of a volume is known only after its create. */
  unpriced: { instances: number; volumes: number };
}

export interface PlannedPurchase {
  type: Purchase['type'];
  what: string;
  scenario: string;
  /** Absent for volumes, and where nothing suitable is available. */
  offer?: string;
  region?: string;
  /** USD. */
  price_per_hour?: number;
  longest_life_minutes: number;
  /** USD. */
  worst_case_usd?: number;
}

export interface PlanOptions {
  level: Level;
  settings: Omit<RunSettings, 'hasSecondKey'>;
  scenarios: readonly Scenario[];
  checks: readonly Check[];
  /** From GET /availability. */
  availability: readonly JsonObject[];
}

/** Plans a run. The worst case is that every resource lives until the end of the clean-up. */
export function toPlan({ level, settings, scenarios, checks, availability }: PlanOptions): Plan {
  const lifeMs = settings.maxMinutes * MS_PER_MINUTE + settings.readyTimeoutMs;
  const purchases = scenarios.flatMap((scenario) =>
    purchasesOf(scenario, settings).map((purchase) =>
      toPlanned(purchase, scenario.id, placementOf(purchase, settings, availability), lifeMs),
    ),
  );
  const total = purchases.reduce((sum, { worst_case_usd }) => sum + (worst_case_usd ?? 0), 0);
  const within = Math.floor(
    ((settings.maxCostUsd / total) * lifeMs - settings.readyTimeoutMs) / MS_PER_MINUTE,
  );
  const unpriced = (type: Purchase['type']): number =>
    purchases.filter((purchase) => purchase.type === type && purchase.worst_case_usd === undefined).length;
  return {
    level,
    scenarios: scenarios.map(({ id, title, buys }) => ({ id, title, buys: buys.length })),
    checks: checks.filter((check) => includes(level, check.level)).map(({ id }) => id),
    purchases,
    minutes: { typical: typicalMinutes(scenarios, settings), worst: round(lifeMs / MS_PER_MINUTE) },
    worst_case_usd: total,
    max_cost_usd: settings.maxCostUsd,
    ...(total > settings.maxCostUsd && within >= 1 ? { max_minutes_within_cap: within } : {}),
    unpriced: { instances: unpriced('instance'), volumes: unpriced('volume') },
  };
}

/** With `--race`, a scenario requests one more unit than there are. */
function purchasesOf({ buys }: Scenario, { race }: PlanOptions['settings']): readonly Purchase[] {
  const racing = buys.filter(({ offer }) => offer === 'race');
  const [first] = racing;
  if (race === undefined || first === undefined) return buys;
  const others = buys.filter(({ offer }) => offer !== 'race');
  return [...others, ...Array.from({ length: race.units + 1 }, () => first)];
}

function placementOf(
  { type, offer }: Purchase,
  { race, ...settings }: PlanOptions['settings'],
  availability: readonly JsonObject[],
): Placement | undefined {
  if (type === 'volume') return undefined;
  const wanted = offer === 'race' && race !== undefined ? { ...settings, offer: race.offer } : settings;
  return placements(availability, wanted)[0];
}

function toPlanned(
  { type, what }: Purchase,
  scenario: string,
  placement: Placement | undefined,
  lifeMs: number,
): PlannedPurchase {
  const longest = { longest_life_minutes: round(lifeMs / MS_PER_MINUTE) };
  if (placement === undefined) return { type, what, scenario, ...longest };
  const { configurationId, region, pricePerHour } = placement;
  return {
    type,
    what,
    scenario,
    offer: configurationId,
    region,
    ...longest,
    ...(pricePerHour === undefined
      ? {}
      : { price_per_hour: pricePerHour, worst_case_usd: worstCaseUsd(pricePerHour, lifeMs) }),
  };
}

/** An estimate: one boot for each scenario with an instance, and a few polls for each scenario. */
function typicalMinutes(scenarios: readonly Scenario[], settings: PlanOptions['settings']): number {
  const boots = scenarios.filter(({ buys }) => buys.some(({ type }) => type === 'instance')).length;
  const polls = (scenarios.length * TYPICAL_POLLS * settings.pollIntervalMs) / MS_PER_MINUTE;
  const isFree = boots === 0;
  return Math.min(settings.maxMinutes, round(isFree ? 1 : boots * TYPICAL_BOOT_MINUTES + polls));
}

function round(minutes: number): number {
  return Math.max(1, Math.ceil(minutes));
}

/** Why a planned run must not start, and what to do about it; undefined where it may. */
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
