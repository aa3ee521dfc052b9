import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable, notTested } from '../../evidence/finding.ts';
import { type OfferRead, seenOffers, wholeReads } from '../../evidence/offers.ts';
import { stringField, stringsField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const scenarios = ['catalog'];

export const regionChecks: readonly Check[] = [
  { id: 'REG-TOKEN-001', level: 'read-only', scenarios, judge: judgeTokens },
  { id: 'REG-STABLE-001', level: 'read-only', scenarios, judge: judgeStable },
  { id: 'REG-SAME-001', level: 'read-only', scenarios, judge: judgeAvailability },
  { id: 'REG-VOL-001', level: 'read-only', scenarios, judge: judgeLocations },
  { id: 'REG-INS-001', level: 'lifecycle', scenarios: ['create', 'boot', 'online'], judge: judgeInstances },
];

interface SeenRegion {
  region: string;
  exchange: Exchange;
}

/** The regions of all offers and locations, each with its first appearance. */
function seenRegions(evidence: Evidence): SeenRegion[] {
  const offered = seenOffers(evidence).flatMap(({ offer, exchange }) =>
    stringsField(offer, 'regions').map((region) => ({ region, exchange })),
  );
  const located = evidence.objects.locations.flatMap(({ value, exchange }) => {
    const region = stringField(value, 'id');
    return region === undefined ? [] : [{ region, exchange }];
  });
  const first = new Map<string, SeenRegion>();
  for (const seen of [...offered, ...located]) if (!first.has(seen.region)) first.set(seen.region, seen);
  return [...first.values()];
}

function judgeTokens(evidence: Evidence): Finding {
  return judgeEach(
    seenRegions(evidence),
    'region tokens',
    ({ region }) => {
      const fault = regionFault(region);
      return fault === undefined
        ? undefined
        : {
            expected: 'a token that a person can read, such as eu-frankfurt',
            actual: `${shortJson(region)}: ${fault}`,
          };
    },
    ({ exchange }) => exchange,
  );
}

/** Why a region is not a readable token. Capitals, underscores and digits are allowed. */
export function regionFault(region: string): string | undefined {
  if (region === '') return 'it is empty';
  if (/\s/.test(region)) return 'it has a space in it';
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(region)) return 'it is a UUID';
  if (/^\d+$/.test(region)) return 'it is a number';
  if (/^[0-9a-f]{8,}$/i.test(region) && /\d/.test(region)) return 'it is a hexadecimal number';
  return /\p{L}/u.test(region) ? undefined : 'it has no letter';
}

/**
 * A region was renamed if an offer lost a region that no offer has any more, and gained one that no offer had before.
 */
function judgeStable(evidence: Evidence): Finding {
  const reads = wholeReads(evidence, 'configurations');
  const compared = reads.slice(1).map((after, index) => ({ before: reads[index] ?? after, after }));
  if (compared.length === 0) return notTested('the offers were read once only');
  return judgeEach(
    compared,
    'pairs of reads of /configurations',
    ({ before, after }) => {
      const had = regionsOf([before]);
      const has = regionsOf([after]);
      const replaced = after.offers.flatMap(({ id, offer }) => {
        const regions = stringsField(offer, 'regions');
        const earlier = stringsField(before.byId.get(id), 'regions');
        const lost = earlier.filter((region) => !has.has(region));
        const got = regions.filter((region) => !had.has(region));
        return lost.length > 0 && got.length > 0
          ? [`${listed(lost)} became ${listed(got)} of ${shortJson(id)}`]
          : [];
      });
      if (replaced.length === 0) return undefined;
      return { expected: 'the same tokens as in the read before', actual: listed(replaced) };
    },
    ({ after }) => after.exchange,
  );
}

function regionsOf(reads: readonly OfferRead[]): Set<string> {
  return new Set(
    reads.flatMap(({ byId }) => [...byId.values()].flatMap((offer) => stringsField(offer, 'regions'))),
  );
}

function judgeAvailability(evidence: Evidence): Finding {
  const known = new Map<string, Set<string>>();
  for (const { byId } of wholeReads(evidence, 'configurations'))
    for (const [id, offer] of byId)
      known.set(id, new Set([...(known.get(id) ?? []), ...stringsField(offer, 'regions')]));
  const offers = wholeReads(evidence, 'availability').flatMap((read) => read.offers);
  return judgeEach(
    offers.filter(({ id }) => known.has(id)),
    'offers in /availability',
    ({ id, offer }) => {
      const strange = stringsField(offer, 'regions').filter((region) => known.get(id)?.has(region) !== true);
      if (strange.length === 0) return undefined;
      return {
        expected: `the regions that ${shortJson(id)} has in /configurations: ${listed([...(known.get(id) ?? [])])}`,
        actual: `${listed(strange.map((region) => shortJson(region)))} in /availability`,
      };
    },
    ({ exchange }) => exchange,
  );
}

function judgeLocations(evidence: Evidence): Finding {
  const reads = evidence.steps('catalog/locations');
  if (reads.length > 0 && evidence.objects.locations.length === 0)
    return notApplicable('storage tier', 'GET /volumes/locations lists no location');
  const known = regionsOf(wholeReads(evidence, 'configurations'));
  return judgeEach(
    evidence.objects.locations,
    'volume locations',
    ({ value, at }) => {
      const id = stringField(value, 'id');
      if (id === undefined || known.has(id)) return undefined;
      return {
        expected: `a token of Configuration.regions: ${listed([...known])}`,
        actual: `${at}.id is ${shortJson(id)}`,
      };
    },
    ({ exchange }) => exchange,
  );
}

function judgeInstances(evidence: Evidence): Finding {
  const known = regionsOf(wholeReads(evidence, 'configurations'));
  const seen = evidence.instances.flatMap(({ observations }) =>
    observations.filter(({ instance }) => instance),
  );
  return judgeEach(
    seen,
    'reads of instances that the run made',
    ({ instance }) => {
      const region = stringField(instance, 'region');
      if (region === undefined || known.has(region)) return undefined;
      return {
        expected: `a token of Configuration.regions: ${listed([...known])}`,
        actual: `region is ${shortJson(region)}`,
      };
    },
    ({ exchange }) => exchange,
  );
}
