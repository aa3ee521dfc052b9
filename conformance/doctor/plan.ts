import type { Check } from '../checks/check.ts';
import { ceilToCent, formatUsd, worstCaseUsd } from '../resources/budget.ts';
import { READ_AGAIN_MS } from '../resources/read-again.ts';
import { MOST_ACCEPTED } from '../scenarios/bad-creates.ts';
import { OBSERVED_MS, observe } from '../scenarios/instances/observe.ts';
import { REFUSAL_CASES } from '../scenarios/instances/refusal-cases.ts';
import { elsewhereOf, type Placement, placements } from '../scenarios/placement.ts';
import type { Purchase, Scenario } from '../scenarios/scenario.ts';
import { VOLUME_REFUSAL_CASES } from '../scenarios/volumes/refusal-cases.ts';
import type { JsonObject } from '../text/json.ts';
import { type ChosenSettings, includes, type Level } from '../transcript/records.ts';
import { config, type Diagnosis, note } from './diagnosis.ts';

const MS_PER_MINUTE = 60_000;
/** O: Limits: the typical target for a machine to come ONLINE is under five minutes. */
const TYPICAL_BOOT_MINUTES = 5;
/** A scenario that waits is over with the second of its polls, some with the third, and some wait for nothing. */
const TYPICAL_POLLS = 2.2;

/** What a run would do, what it would create, and what that could cost. */
export interface Plan {
  level: Level;
  scenarios: readonly { id: string; title: string; buys: number }[];
  checks: readonly string[];
  purchases: readonly PlannedPurchase[];
  minutes: { typical: number; worst: number };
  /** What a target would sell if it accepts creates that must be refused, until the run stops sending them. */
  if_accepted: readonly PlannedMistake[];
  /** In USD, including wrongly accepted creates, without resources of unknown price. */
  worst_case_usd: number;
  max_cost_usd: number;
  /**
   * The longest `--max-minutes` whose worst case is within the cap. Absent if the plan already is within it, or cannot
   * be.
   */
  max_minutes_within_cap?: number;
  /** How many purchases have no price. The price of a volume is known only after its create. */
  unpriced: { instances: number; volumes: number };
}

export interface PlannedPurchase {
  type: Purchase['type'];
  what: string;
  scenario: string;
  /** Absent for volumes, and if no suitable offer is available. */
  offer?: string;
  region?: string;
  /** USD. */
  price_per_hour?: number;
  longest_life_minutes: number;
  /** USD. */
  worst_case_usd?: number;
}

/** Creates that must be refused. Any that is accepted is destroyed at once. */
export interface PlannedMistake {
  scenario: string;
  type: Purchase['type'];
  /** How many may be accepted before the rest is skipped. */
  count: number;
  longest_life_minutes: number;
  /** USD; absent if the price is unknown. */
  price_per_hour?: number;
  /** USD, for all of them. */
  worst_case_usd?: number;
}

/** Creates whose defect a target may ignore. They are sent regardless of acceptances. */
const LAWFUL = REFUSAL_CASES.filter(({ mayBeAccepted }) => mayBeAccepted === true).length;

export interface PlanOptions {
  level: Level;
  settings: ChosenSettings;
  scenarios: readonly Scenario[];
  checks: readonly Check[];
  /** From GET /availability. */
  availability: readonly JsonObject[];
  /** From GET /configurations. */
  configurations: readonly JsonObject[];
}

/** Plans a run. The worst case is that every resource lives until the end of the clean-up. */
export function toPlan(options: PlanOptions): Plan {
  const { level, settings, scenarios, checks, availability } = options;
  const lifeMs = settings.maxMinutes * MS_PER_MINUTE + settings.readyTimeoutMs;
  const planned = (offers: readonly Purchase['offer'][]): PlannedPurchase[] =>
    scenarios.flatMap((scenario) =>
      purchasesOf(scenario, settings)
        .filter(({ offer }) => offers.includes(offer))
        .map((purchase) =>
          toPlanned(purchase, scenario.id, placementOf(purchase, settings, availability), lifeMs),
        ),
    );
  const canRestart = settings.restarts === true && level === 'full';
  const needed = planned(['cheapest', 'race', ...(canRestart ? (['restart'] as const) : [])]);
  const purchases = [...needed, ...affordable(planned(['elsewhere']), settings.maxCostUsd - usdOf(needed))];
  const mistakes = mistakesOf(options);
  const bought = usdOf(purchases);
  // A create that would exceed the cap is not sent.
  const total = bought + Math.min(usdOf(mistakes), Math.max(settings.maxCostUsd - bought, 0));
  const within = Math.floor(
    ((settings.maxCostUsd / bought) * lifeMs - settings.readyTimeoutMs) / MS_PER_MINUTE,
  );
  const unpriced = (type: Purchase['type']): number =>
    purchases.filter((purchase) => purchase.type === type && purchase.worst_case_usd === undefined).length;
  return {
    level,
    scenarios: scenarios.map(({ id, title, buys }) => ({ id, title, buys: buys.length })),
    checks: checks.filter((check) => includes(level, check.level)).map(({ id }) => id),
    purchases,
    if_accepted: mistakes,
    minutes: { typical: typicalMinutes(scenarios, settings), worst: round(lifeMs / MS_PER_MINUTE) },
    worst_case_usd: total,
    max_cost_usd: settings.maxCostUsd,
    ...(total > settings.maxCostUsd && within >= 1 && { max_minutes_within_cap: within }),
    unpriced: { instances: unpriced('instance'), volumes: unpriced('volume') },
  };
}

/** Those that are bought only within the cap: of a known price, and all together within what is left of it. */
function affordable(optional: readonly PlannedPurchase[], leftUsd: number): readonly PlannedPurchase[] {
  const priced = optional.filter(({ worst_case_usd }) => worst_case_usd !== undefined);
  return usdOf(priced) <= leftUsd ? priced : [];
}

function usdOf(planned: readonly { worst_case_usd?: number }[]): number {
  return planned.reduce((sum, { worst_case_usd }) => sum + (worst_case_usd ?? 0), 0);
}

/** What each scenario with creates that must be refused may buy from a target that accepts them. */
function mistakesOf({ scenarios, settings, availability, configurations }: PlanOptions): PlannedMistake[] {
  const cheapest = placements(availability, settings)[0]?.pricePerHour;
  const unavailable = configurations.filter((offer) => offer['available'] === false);
  const soldOut = placements(unavailable.map((offer) => ({ ...offer, available: true })))[0]?.pricePerHour;
  const dearer = Math.max(soldOut ?? 0, cheapest ?? 0);
  const families: Record<
    string,
    Omit<PlannedMistake, 'scenario' | 'longest_life_minutes' | 'worst_case_usd'>
  > = {
    refusals: {
      type: 'instance',
      count: settings.exhaustive === true ? REFUSAL_CASES.length + 1 : MOST_ACCEPTED + LAWFUL,
      ...(cheapest !== undefined && { price_per_hour: cheapest }),
    },
    // Two of a sold-out offer, and two of an offer in a region without capacity.
    'sold-out': { type: 'instance', count: 4, ...(dearer !== 0 && { price_per_hour: dearer }) },
    volumes: {
      type: 'volume',
      count: settings.exhaustive === true ? VOLUME_REFUSAL_CASES.length + 1 : MOST_ACCEPTED,
    },
  };
  return scenarios.flatMap(({ id }) => {
    const family = families[id];
    if (family === undefined) return [];
    const { count, price_per_hour } = family;
    return {
      scenario: id,
      ...family,
      longest_life_minutes: round(settings.readyTimeoutMs / MS_PER_MINUTE),
      ...(price_per_hour !== undefined && {
        worst_case_usd: count * worstCaseUsd(price_per_hour, settings.readyTimeoutMs),
      }),
    };
  });
}

/** With `--race`, a scenario requests one unit more than exist. */
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
  if (offer === 'elsewhere') {
    const choices = placements(availability, settings);
    return elsewhereOf(choices, choices[0]?.region, settings);
  }
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
    ...(pricePerHour !== undefined && {
      price_per_hour: pricePerHour,
      worst_case_usd: worstCaseUsd(pricePerHour, lifeMs),
    }),
  };
}

/**
 * An estimate: the boots, where all that are beside the first instance count as one, the observation, a few polls for each
 * scenario that waits, and the reads after the last DELETE.
 */
function typicalMinutes(scenarios: readonly Scenario[], settings: PlanOptions['settings']): number {
  const known = scenarios.reduce((sum, { minutes = 0 }) => sum + minutes, 0);
  if (known > 0) return Math.min(settings.maxMinutes, known);
  const booting = scenarios.filter(({ buys }) => buys.some(({ type }) => type === 'instance'));
  if (booting.length === 0) return Math.min(settings.maxMinutes, 1);
  const hasBeside = booting.some(({ isBesideFirst }) => isBesideFirst);
  const boots = booting.filter(({ isBesideFirst }) => !isBesideFirst).length + (hasBeside ? 1 : 0);
  // What boots beside the first instance takes longer than the observation.
  const { observeMs = OBSERVED_MS, pollIntervalMs } = settings;
  const observedMs = hasBeside || !scenarios.includes(observe) ? 0 : observeMs;
  const waiting = scenarios.filter(({ level }) => level !== 'read-only').length;
  const restMs = observedMs + waiting * TYPICAL_POLLS * pollIntervalMs + READ_AGAIN_MS;
  return Math.min(settings.maxMinutes, round(boots * TYPICAL_BOOT_MINUTES + restMs / MS_PER_MINUTE));
}

function round(minutes: number): number {
  return Math.max(1, Math.ceil(minutes));
}

/** What a run cannot buy, with the remedy: an offer without a price (what is free is tested all the same), or all over the cap. */
export function costOf(plan: Plan, acceptsUnknownCost: boolean): Diagnosis[] {
  const { purchases, worst_case_usd: usd, max_cost_usd: cap, max_minutes_within_cap: minutes } = plan;
  const unpriced = purchases.find(
    ({ offer, price_per_hour }) => offer !== undefined && price_per_hour === undefined,
  );
  const found: Diagnosis[] = [];
  if (unpriced !== undefined && !acceptsUnknownCost)
    found.push(
      note(
        'Cost',
        `the offer ${unpriced.offer} has no usable price, so that no cap on the cost would hold: nothing of it is bought`,
        'name another with --offer, or go on without a cap with --accept-unknown-cost',
      ),
    );
  const shorter = minutes === undefined ? '' : ` or --max-minutes ${minutes}`;
  if (usd > cap)
    found.push(
      config(
        'Cost',
        `this run may cost up to ${formatUsd(usd)}, which is more than --max-cost ${cap}`,
        `pass --max-cost ${ceilToCent(usd)}${shorter}`,
      ),
    );
  return found;
}
