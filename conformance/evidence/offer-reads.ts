import type { Exchange } from '../transcript/records.ts';
import { notTested, Unproved } from '../verdict/finding.ts';
import { isObject, isSuccess, type JsonObject, jsonOf, textField } from '../wire/json.ts';
import type { Evidence } from './evidence.ts';
import { hasGoodCredential } from './instance-timeline.ts';

/** The two lists of offers. */
export type OfferList = 'configurations' | 'availability';

/** An offer in an answer, with the id by which it is known. */
export interface SeenOffer {
  id: string;
  offer: JsonObject;
  exchange: Exchange;
}

/** A read of a list of offers that was answered with one. */
export interface OfferRead {
  exchange: Exchange;
  /** By what it was filtered; both undefined for a read of the whole list. */
  instanceType: string | undefined;
  region: string | undefined;
  /** Those with an id, in their order. */
  offers: readonly SeenOffer[];
}

/** Every read of a list in the run, filtered or not. Throws `Unproved` where there is none. */
export function offerReads(evidence: Evidence, list: OfferList): OfferRead[] {
  evidence.steps(`catalog/${list}`);
  const reads = anyReads(evidence, list);
  if (reads.length > 0) return reads;
  throw new Unproved(notTested(`GET /${list} was never answered with a list of offers`));
}

/** The reads of the whole list. Throws `Unproved` where there is none. */
export function wholeReads(evidence: Evidence, list: OfferList): OfferRead[] {
  const reads = offerReads(evidence, list).filter(isWhole);
  if (reads.length > 0) return reads;
  throw new Unproved(notTested(`GET /${list} was never answered with a list of offers`));
}

export function isWhole({ instanceType, region }: OfferRead): boolean {
  return instanceType === undefined && region === undefined;
}

/** Every offer of every read of both lists, in the order of sending. Throws `Unproved` where there is none. */
export function seenOffers(evidence: Evidence): SeenOffer[] {
  const reads = [...offerReads(evidence, 'configurations'), ...anyReads(evidence, 'availability')];
  return reads.toSorted((a, b) => a.exchange.n - b.exchange.n).flatMap(({ offers }) => offers);
}

/** Every read of a list, where there is any. */
export function anyReads(evidence: Evidence, list: OfferList): OfferRead[] {
  return evidence.exchanges.flatMap((exchange) => readOf(exchange, list) ?? []);
}

function readOf(exchange: Exchange, list: OfferList): OfferRead | undefined {
  const { method, path } = exchange.request;
  const [place, query] = path.split('?');
  if (method !== 'GET' || place !== `/${list}` || !isSuccess(exchange) || !hasGoodCredential(exchange))
    return undefined;
  const body = jsonOf(exchange);
  const items = isObject(body) ? body['configurations'] : undefined;
  if (!Array.isArray(items)) return undefined;
  const filter = new URLSearchParams(query);
  return {
    exchange,
    instanceType: filter.get('instance_type') ?? undefined,
    region: filter.get('region') ?? undefined,
    offers: items.filter(isObject).flatMap((offer) => {
      const id = textField(offer, 'id');
      return id === undefined ? [] : [{ id, offer, exchange }];
    }),
  };
}
