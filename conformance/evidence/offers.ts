import { hasField, isObject, type JsonObject, stringField } from '../text/json.ts';
import { shortJson } from '../text/wording.ts';
import { isSuccess, jsonOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import type { Evidence } from './evidence.ts';
import { MissingEvidence, notTested, refuseTooLong } from './finding.ts';
import { hasGoodCredential, type InstanceTimeline } from './instances.ts';

/** Of a longer list only the first offers are checked one by one. */
const MOST_OFFERS = 2000;

/** The two lists of offers. */
export type OfferList = 'configurations' | 'availability';

/** An offer as one answer showed it. */
export interface SeenOffer {
  id: string;
  offer: JsonObject;
  exchange: Exchange;
}

/** A read of offers that was answered with a list. */
export interface OfferRead {
  exchange: Exchange;
  /** The filters of the request. Both are undefined for the whole list. */
  instanceType: string | undefined;
  region: string | undefined;
  /** The offers with an id, up to the limit: the ones that are checked one by one. */
  offers: readonly SeenOffer[];
  /** Every offer with an id. */
  byId: ReadonlyMap<string, JsonObject>;
  /** Ids that occur more than once. */
  repeated: readonly string[];
}

const reads = new WeakMap<Exchange, OfferRead>();

/** Every read of a list in the run, filtered or not. Throws `MissingEvidence` if there is none. */
export function offerReads(evidence: Evidence, list: OfferList): OfferRead[] {
  evidence.steps(`catalog/${list}`);
  const found = anyReads(evidence, list);
  if (found.length > 0) return found;
  refuseTooLong(evidence.steps(`catalog/${list}`));
  throw new MissingEvidence(notTested(`GET /${list} was never answered with a list of offers`));
}

/** The reads of the whole list. Throws `MissingEvidence` if there is none. */
export function wholeReads(evidence: Evidence, list: OfferList): OfferRead[] {
  const found = offerReads(evidence, list).filter(isWhole);
  if (found.length > 0) return found;
  throw new MissingEvidence(notTested(`GET /${list} was never answered with a list of offers`));
}

export function isWhole({ instanceType, region }: OfferRead): boolean {
  return instanceType === undefined && region === undefined;
}

/** Every offer of every read of both lists, in the order of sending. Throws `MissingEvidence` if there is none. */
export function seenOffers(evidence: Evidence): SeenOffer[] {
  const found = [...offerReads(evidence, 'configurations'), ...anyReads(evidence, 'availability')];
  return found.toSorted((a, b) => a.exchange.n - b.exchange.n).flatMap(({ offers }) => offers);
}

/** Every read of a list. May be empty. */
export function anyReads(evidence: Evidence, list: OfferList): OfferRead[] {
  return evidence.exchanges.flatMap((exchange) => readOf(exchange, list) ?? []);
}

function readOf(exchange: Exchange, list: OfferList): OfferRead | undefined {
  const { method, path } = exchange.request;
  const [place, query] = path.split('?');
  if (method !== 'GET' || place !== `/${list}` || !isSuccess(exchange) || !hasGoodCredential(exchange))
    return undefined;
  const known = reads.get(exchange);
  if (known !== undefined) return known;
  const body = jsonOf(exchange);
  const items = isObject(body) ? body['configurations'] : undefined;
  if (!Array.isArray(items)) return undefined;
  const read = readFrom(exchange, items, new URLSearchParams(query));
  reads.set(exchange, read);
  return read;
}

function readFrom(exchange: Exchange, items: readonly unknown[], filter: URLSearchParams): OfferRead {
  const offers = items.filter(isObject).flatMap((offer) => {
    const id = stringField(offer, 'id');
    return id === undefined ? [] : [{ id, offer, exchange }];
  });
  return {
    exchange,
    instanceType: filter.get('instance_type') ?? undefined,
    region: filter.get('region') ?? undefined,
    offers: offers.slice(0, MOST_OFFERS),
    byId: new Map(offers.map(({ id, offer }) => [id, offer])),
    repeated: repeatedOf(offers.map(({ id }) => id)),
  };
}

/** The ids that occur more than once. */
export function repeatedOf(ids: readonly string[]): string[] {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const id of ids) (seen.has(id) ? repeated : seen).add(id);
  return [...repeated];
}

/** The InstanceType of an instance's offer. Undefined if no read of the offers showed it. */
export function offerTypes(evidence: Evidence): (timeline: InstanceTimeline) => string | undefined {
  const types = new Map(
    evidence.objects.configurations.map(({ value }) => [
      stringField(value, 'id'),
      stringField(value, 'instance_type'),
    ]),
  );
  return ({ observations }) =>
    types.get(stringField(observations.find(({ instance }) => instance)?.instance, 'configuration_id'));
}

/** The fields that identify an offer. Availability, regions and price may change at any time. */
const STATIC_FIELDS = [
  'name',
  'instance_type',
  'vcpus',
  'memory_gb',
  'storage_gb',
  'gpu_count',
  'gpu_type',
  'gpu_memory_gb',
  'supports_cloud_init',
];

/**
 * The static fields that differ between two reads of an offer, in words. A field that one read leaves out does not
 * count.
 */
export function staticDifferences(before: JsonObject, after: JsonObject): string[] {
  return STATIC_FIELDS.filter(
    (field) => hasField(before, field) && hasField(after, field) && before[field] !== after[field],
  ).map((field) => `${field} is ${shortJson(after[field])} and was ${shortJson(before[field])}`);
}

/** Two offers with the same fingerprint are one offer under two ids. */
export function fingerprint(offer: JsonObject): string {
  return JSON.stringify(STATIC_FIELDS.map((field) => offer[field] ?? null));
}
