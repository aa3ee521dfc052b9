import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, judgeEachExchange, notTested } from '../../evidence/finding.ts';
import { isCreate } from '../../evidence/instances.ts';
import { isWhole, type OfferRead, offerReads, staticDifferences, wholeReads } from '../../evidence/offers.ts';
import { objectsField, stringField, stringsField } from '../../text/json.ts';
import { duration, listed, shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, statusOf } from '../../transcript/exchange.ts';
import { answersOf, type Check } from '../check.ts';
import { judgeEachOffer, judgeListAnswers } from './catalog.ts';
import { judgeRegionByRegion } from './region-by-region.ts';

const scenarios = ['catalog'];

export const availabilityChecks: readonly Check[] = [
  {
    id: 'AVL-LIST-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeListAnswers(evidence, ['catalog/availability', 'catalog/of-region'], 'configurations'),
  },
  {
    id: 'AVL-TRUE-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachOffer(offered(evidence), 'offers in /availability', ({ offer }) =>
        offer['available'] === true
          ? undefined
          : { expected: 'available true', actual: `available ${shortJson(offer['available'])}` },
      ),
  },
  { id: 'AVL-SUBSET-001', level: 'read-only', scenarios, judge: judgeSubset },
  { id: 'AVL-AGREE-001', level: 'read-only', scenarios, judge: judgeAgreement },
  { id: 'AVL-EMPTY-001', level: 'read-only', scenarios, judge: judgeEmpty },
  { id: 'AVL-SAME-001', level: 'read-only', scenarios, judge: judgeSame },
  { id: 'AVL-REGION-001', level: 'read-only', scenarios, judge: judgeRegionFilter },
  { id: 'AVL-REGION-002', level: 'read-only', scenarios, judge: judgeUnknownRegion },
  { id: 'AVL-REGION-003', level: 'read-only', scenarios, judge: judgeRegionsCover },
  { id: 'AVL-REGION-004', level: 'read-only', scenarios, judge: judgeRegionByRegion },
];

function offered(evidence: Evidence) {
  return offerReads(evidence, 'availability').flatMap(({ offers }) => offers);
}

function judgeSubset(evidence: Evidence): Finding {
  const known = new Set(wholeReads(evidence, 'configurations').flatMap(({ byId }) => [...byId.keys()]));
  return judgeEachOffer(offered(evidence), 'offers in /availability', ({ id }) =>
    known.has(id)
      ? undefined
      : { expected: 'an offer of /configurations', actual: `no read of /configurations has it` },
  );
}

/** A sale between two reads explains one difference; a difference in every pair is a fault. */
function judgeAgreement(evidence: Evidence): Finding {
  const pairs = pairedReads(evidence);
  if (pairs.length < 2) return notTested('the two lists were not read one after the other more than once');
  const ids = new Set(pairs.flatMap(({ configurations }) => [...configurations.byId.keys()]));
  return judgeEach(
    [...ids],
    `offers, compared in ${pairs.length} pairs of reads`,
    (id) => {
      const differing = pairs.filter(
        (pair) => isAvailable(pair.configurations, id) !== hasOffer(pair.availability, id),
      );
      const [first] = differing;
      if (first === undefined || differing.length < pairs.length) return undefined;
      const listedNow = hasOffer(first.availability, id) ? 'is' : 'is not';
      return {
        expected: 'available true in /configurations for what /availability lists, and for nothing else',
        actual: `offer ${shortJson(id)} has available ${shortJson(isAvailable(first.configurations, id))} and ${listedNow} in /availability, in ${differing.length} of ${pairs.length} pairs of reads`,
        shown: first.availability.exchange,
      };
    },
    () => pairs[0]?.availability.exchange,
  );
}

interface Pair {
  configurations: OfferRead;
  availability: OfferRead;
}

/** Pairs each unfiltered read of /configurations with the next read of /availability. */
function pairedReads(evidence: Evidence): Pair[] {
  const availability = wholeReads(evidence, 'availability').filter(({ exchange }) =>
    isOfCatalog(exchange.step),
  );
  return wholeReads(evidence, 'configurations')
    .filter(({ exchange }) => exchange.step === 'catalog/configurations')
    .flatMap((configurations) => {
      const next = availability.find(({ exchange }) => exchange.n > configurations.exchange.n);
      return next === undefined ? [] : [{ configurations, availability: next }];
    });
}

function isOfCatalog(step: string): boolean {
  return step === 'catalog/availability';
}

/** Between two reads that list several offers all of them were sold, and freed again, or the read was wrong. */
function judgeEmpty(evidence: Evidence): Finding {
  const whole = wholeReads(evidence, 'availability');
  const several = whole.filter(({ offers }) => offers.length > 1);
  const sold = evidence.exchanges.filter((exchange) => isCreate(exchange) && isSuccess(exchange));
  return judgeEach(
    whole,
    'reads of /availability',
    ({ offers, exchange }) => {
      const before = several.findLast((read) => read.exchange.n < exchange.n)?.exchange;
      const after = several.find((read) => read.exchange.n > exchange.n)?.exchange;
      if (offers.length > 0 || before === undefined || after === undefined) return undefined;
      if (sold.some(({ n }) => n > before.n && n < after.n)) return undefined;
      return {
        expected: `offers, as ${duration(exchange.sentAt - before.sentAt)} before it and ${duration(after.sentAt - exchange.sentAt)} after it`,
        actual: 'an empty list',
      };
    },
    ({ exchange }) => exchange,
  );
}

function isAvailable({ byId }: OfferRead, id: string): boolean {
  return byId.get(id)?.['available'] === true;
}

function hasOffer({ byId }: OfferRead, id: string): boolean {
  return byId.has(id);
}

function judgeSame(evidence: Evidence): Finding {
  const known = new Map(wholeReads(evidence, 'configurations').flatMap(({ byId }) => [...byId]));
  return judgeEachOffer(
    offered(evidence).filter(({ id }) => known.has(id)),
    'offers in /availability',
    ({ id, offer }) => {
      const differences = staticDifferences(known.get(id) ?? {}, offer);
      if (differences.length === 0) return undefined;
      return { expected: 'the offer as it is in /configurations', actual: listed(differences) };
    },
  );
}

/** A filtered answer may list all regions of an offer or only some, but must list the requested one. */
function judgeRegionFilter(evidence: Evidence): Finding {
  evidence.steps('catalog/of-region');
  const filtered = offerReads(evidence, 'availability').filter(
    (read) => !isWhole(read) && read.exchange.step !== 'catalog/unknown-region',
  );
  return judgeEach(
    filtered.filter(({ offers }) => offers.length > 0),
    'reads of /availability by region that listed offers',
    ({ region = '', offers }) => {
      const strange = offers.filter(({ offer }) => !stringsField(offer, 'regions').includes(region));
      if (strange.length === 0) return undefined;
      const [one] = strange;
      const shown = `${shortJson(one?.id)} is listed, whose regions are ${listed(stringsField(one?.offer, 'regions'))}`;
      return {
        expected: `offers in ${shortJson(region)} only`,
        actual: `${strange.length} of ${offers.length} are not: ${shown}`,
      };
    },
    ({ exchange }) => exchange,
  );
}

function judgeUnknownRegion(evidence: Evidence): Finding {
  return judgeEachExchange(
    answersOf(evidence, 'catalog/unknown-region'),
    'reads of a region that does not exist',
    (exchange) => {
      const offers = objectsField(jsonOf(exchange), 'configurations');
      const isEmpty = statusOf(exchange) === 200 && offers.length === 0;
      if (isEmpty || [400, 404].includes(statusOf(exchange) ?? 0)) return undefined;
      const ids = offers.slice(0, 10).map((offer) => shortJson(stringField(offer, 'id')));
      return {
        expected: '200 with no offers (or 400 or 404)',
        actual: isSuccess(exchange) ? `${offers.length} offers: ${listed(ids)}` : answerOf(exchange),
      };
    },
  );
}

/** An offer that was available before and after must be listed in one of its regions. */
function judgeRegionsCover(evidence: Evidence): Finding {
  const asked = evidence.steps('catalog/of-region');
  const reads = offerReads(evidence, 'availability');
  const whole = reads.filter((read) => isWhole(read) && isOfCatalog(read.exchange.step));
  const before = whole.findLast(({ exchange }) => exchange.n < (asked[0]?.n ?? 0));
  const after = whole.find(({ exchange }) => exchange.n > (asked.at(-1)?.n ?? 0));
  const filtered = reads.filter(({ exchange }) => asked.includes(exchange));
  const regions = new Set(filtered.flatMap(({ region }) => region ?? []));
  const lasting = (before?.offers ?? []).filter(({ id, offer }) => {
    const all = stringsField(offer, 'regions');
    return (
      after !== undefined &&
      hasOffer(after, id) &&
      all.length > 0 &&
      all.every((region) => regions.has(region))
    );
  });
  return judgeEachOffer(lasting, 'offers that were available before and after', ({ id, offer }) =>
    filtered.some((read) => hasOffer(read, id))
      ? undefined
      : {
          expected: `to be listed for one of its regions at least: ${listed(stringsField(offer, 'regions'))}`,
          actual: 'available without a filter, and listed for none of its regions',
        },
  );
}
