import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import {
  anyReads,
  fingerprint,
  isWhole,
  type OfferRead,
  offerReads,
  repeatedOf,
  type SeenOffer,
  seenOffers,
  staticDifferences,
  wholeReads,
} from '../../evidence/offers.ts';
import { hasField, isObject, stringField, stringsField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import { answersOf, type Check, listProblem } from '../check.ts';

const scenarios = ['catalog'];

export const catalogChecks: readonly Check[] = [
  {
    id: 'CFG-LIST-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeListAnswers(evidence, ['catalog/configurations', 'catalog/of-type'], 'configurations'),
  },
  { id: 'CFG-ID-001', level: 'read-only', scenarios, judge: judgeUnique },
  { id: 'CFG-STABLE-001', level: 'read-only', scenarios, judge: judgeStable },
  { id: 'CFG-OMIT-001', level: 'read-only', scenarios, judge: judgeOmitted },
  { id: 'CFG-FILTER-001', level: 'read-only', scenarios, judge: judgeFilter },
  {
    id: 'CFG-PRICE-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachOffer(seenOffers(evidence), 'offers', ({ offer }) => {
        const below = ['price_per_hour', 'spot_price_per_hour'].filter((field) => Number(offer[field]) < 0);
        if (below.length === 0) return undefined;
        return {
          expected: 'a price in USD per hour that is not below zero',
          actual: listed(below.map((field) => `${field} is ${shortJson(offer[field])}`)),
        };
      }),
  },
  {
    id: 'CFG-PRICE-002',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachOffer(seenOffers(evidence), 'offers', ({ offer }) =>
        offer['price_per_hour'] === 0
          ? { expected: 'an on-demand price above zero', actual: 'price_per_hour is 0' }
          : undefined,
      ),
  },
  { id: 'CFG-SPOT-001', level: 'read-only', scenarios, judge: judgeSpotPrice },
  { id: 'CFG-GPU-001', level: 'read-only', scenarios, judge: judgeGpuSpelling },
  { id: 'CFG-REGION-001', level: 'read-only', scenarios, judge: judgeRegions },
];

/** Whether a list was answered 200 with an array in `field`. */
export function judgeListAnswers(evidence: Evidence, steps: readonly string[], field: string): Finding {
  return judgeEachExchange(answersOf(evidence, ...steps), 'reads of the list', (exchange) =>
    listProblem(exchange, field),
  );
}

/** `judgeEach` for offers; problems begin with the offer's id. */
export function judgeEachOffer(
  offers: readonly SeenOffer[],
  what: string,
  problemOf: (offer: SeenOffer) => Problem | undefined,
): Finding {
  return judgeEach(
    offers,
    what,
    (offer) => {
      const problem = problemOf(offer);
      return problem && { ...problem, actual: `offer ${shortJson(offer.id)}: ${problem.actual}` };
    },
    ({ exchange }) => exchange,
  );
}

function judgeUnique(evidence: Evidence): Finding {
  const reads = [
    ...wholeReads(evidence, 'configurations'),
    ...anyReads(evidence, 'availability').filter(isWhole),
  ];
  return judgeEach(
    reads.filter(({ offers }) => offers.length > 0),
    'lists with offers',
    ({ repeated, byId }) =>
      repeated.length === 0
        ? undefined
        : {
            expected: 'each id once in a list',
            actual: `${listed(repeated.map((id) => shortJson(id)))} more than once, among ${byId.size} ids`,
          },
    ({ exchange }) => exchange,
  );
}

/** An id always names the same offer, and an offer does not come back under another id. */
function judgeStable(evidence: Evidence): Finding {
  const reads = wholeReads(evidence, 'configurations');
  if (reads.length < 2) return notTested('the offers were read once only');
  const first = new Map<string, SeenOffer>();
  return judgeEach(
    reads.filter(({ offers }) => offers.length > 0),
    'reads of /configurations with offers',
    ({ offers, byId }) => {
      const replaced = new Map(
        [...first.values()]
          .filter(({ id }) => !byId.has(id))
          .map(({ id, offer }) => [fingerprint(offer), id]),
      );
      const changes = offers.flatMap((seen) => {
        const before = first.get(seen.id);
        if (before === undefined) {
          const earlierId = replaced.get(fingerprint(seen.offer));
          first.set(seen.id, seen);
          return earlierId === undefined ? [] : [`${shortJson(earlierId)} is now ${shortJson(seen.id)}`];
        }
        return staticDifferences(before.offer, seen.offer).map(
          (change) => `${shortJson(seen.id)}: ${change}`,
        );
      });
      if (changes.length === 0) return undefined;
      return { expected: 'each offer as it was in the first read', actual: listed(changes) };
    },
    ({ exchange }) => exchange,
  );
}

/** O: Availability contract 2: an unavailable offer is listed as such, never left out. */
function judgeOmitted(evidence: Evidence): Finding {
  const reads = wholeReads(evidence, 'configurations');
  if (reads.length < 2) return notTested('the offers were read once only');
  const known = new Set<string>();
  const finding = judgeEach(
    reads,
    'reads of /configurations',
    ({ byId }) => {
      const missing = [...known].filter((id) => !byId.has(id));
      for (const id of byId.keys()) known.add(id);
      if (missing.length === 0) return undefined;
      return {
        expected: 'every offer of the reads before, with available false where it is sold out',
        actual: `${listed(missing.map((id) => shortJson(id)))} left out, ${byId.size} offers listed`,
      };
    },
    ({ exchange }) => exchange,
  );
  const wasUnavailable = evidence.objects.configurations.some(
    ({ value }) => isObject(value) && value['available'] === false,
  );
  if (finding.verdict !== 'pass' || wasUnavailable) return finding;
  return notApplicable(
    'an offer that is not available',
    'every offer was available in every read: were one sold out, it would have to be listed with available false',
  );
}

/**
 * Compares each filtered list with the unfiltered lists before and after it, so that an offer may come or go in
 * between.
 */
function judgeFilter(evidence: Evidence): Finding {
  const whole = wholeReads(evidence, 'configurations');
  const filtered = offerReads(evidence, 'configurations').filter((read) => read.instanceType !== undefined);
  if (filtered.every(({ offers }) => offers.length === 0) && whole.every(({ offers }) => offers.length === 0))
    return notTested('there is no offer to filter');
  return judgeEach(
    filtered,
    'reads of /configurations by instance_type',
    (read) => {
      const { instanceType, offers, byId } = read;
      const strange = offers.filter(({ offer }) => offer['instance_type'] !== instanceType);
      const missing = whole[0]?.offers.filter(
        ({ id, offer }) => offer['instance_type'] === instanceType && !byId.has(id) && isInAll(whole, id),
      );
      const faults = [
        ...strange.map(
          ({ id, offer }) => `${shortJson(id)} is listed, a ${shortJson(offer['instance_type'])}`,
        ),
        ...(missing ?? []).map(({ id }) => `${shortJson(id)} is not listed`),
      ];
      if (faults.length === 0) return undefined;
      return { expected: `every ${instanceType} offer, and no other`, actual: listed(faults) };
    },
    ({ exchange }) => exchange,
  );
}

function isInAll(reads: readonly OfferRead[], id: string): boolean {
  return reads.every(({ byId }) => byId.has(id));
}

function judgeSpotPrice(evidence: Evidence): Finding {
  const spot = seenOffers(evidence).filter(({ offer }) => offer['instance_type'] === 'SPOT');
  if (spot.length === 0) return notApplicable('SPOT offers', 'no offer has instance_type SPOT');
  return judgeEachOffer(spot, 'SPOT offers', ({ offer }) =>
    hasField(offer, 'spot_price_per_hour')
      ? undefined
      : { expected: 'spot_price_per_hour, since the offer is SPOT', actual: 'it has none' },
  );
}

/** Spellings that differ only in case and punctuation are one model. */
function judgeGpuSpelling(evidence: Evidence): Finding {
  const withGpu = seenOffers(evidence).filter(({ offer }) => stringField(offer, 'gpu_type') !== undefined);
  if (withGpu.length === 0) return notApplicable('GPUs', 'no offer has a gpu_type');
  const first = new Map<string, string>();
  return judgeEachOffer(withGpu, 'offers with a gpu_type', ({ offer }) => {
    const spelling = stringField(offer, 'gpu_type') ?? '';
    const model = spelling.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
    const before = first.get(model) ?? spelling;
    first.set(model, before);
    return spelling === before
      ? undefined
      : {
          expected: `gpu_type ${shortJson(before)}, as elsewhere`,
          actual: `gpu_type ${shortJson(spelling)}`,
        };
  });
}

function judgeRegions(evidence: Evidence): Finding {
  return judgeEachOffer(seenOffers(evidence), 'offers', ({ offer }) => {
    const regions = stringsField(offer, 'regions');
    const repeated = repeatedOf(regions);
    if (repeated.length > 0)
      return {
        expected: 'each region once',
        actual: `${listed(repeated.map((region) => shortJson(region)))} more than once`,
      };
    return regions.length === 0 && offer['available'] === true
      ? { expected: 'a region in which it is available', actual: 'available true, and no region' }
      : undefined;
  });
}
