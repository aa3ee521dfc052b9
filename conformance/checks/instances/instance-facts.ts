import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable } from '../../evidence/finding.ts';
import { pairs } from '../../evidence/instances.ts';
import type { SeenObject } from '../../evidence/objects.ts';
import { offerTypes, seenOffers } from '../../evidence/offers.ts';
import { hasField, type JsonObject, numberField, stringField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const ofInstances = { level: 'lifecycle', scenarios: ['create', 'boot', 'online'] } as const;
const OFFERED = ['vcpus', 'memory_gb', 'gpu_count', 'gpu_type'];
/** An instance whose price exceeds the offer's by more than this factor uses another unit. */
const MOST_TIMES = 10;
/** Two prices that differ by a smaller share are the same, rounded. */
const ROUNDING = 1e-6;

/** The fields of an instance or a volume other than its status. */
export const instanceFactChecks: readonly Check[] = [
  {
    id: 'INS-PRICE-002',
    ...ofInstances,
    judge(evidence) {
      evidence.steps('create/post');
      return judgePrices(evidence.objects.instances, 'instances');
    },
  },
  { id: 'INS-PRICE-003', ...ofInstances, judge: judgePriceOfOffer },
  { id: 'INS-PRICE-004', ...ofInstances, judge: judgePriceKept },
  { id: 'INS-OFFER-001', ...ofInstances, judge: judgeOffered },
  {
    id: 'INS-UNIT-001',
    ...ofInstances,
    judge: (evidence) => judgeUnits(evidence, ['memory_gb', 'storage_gb'], 500),
  },
  { id: 'INS-UNIT-002', ...ofInstances, judge: (evidence) => judgeUnits(evidence, ['price_per_hour'], 20) },
  {
    id: 'VOL-PRICE-002',
    level: 'full',
    scenarios: ['volumes'],
    judge(evidence) {
      evidence.steps('volumes/create');
      return judgePrices(evidence.objects.volumes, 'volumes');
    },
  },
];

function judgePrices(objects: readonly SeenObject[], what: string): Finding {
  const priced = objects.filter(({ value }) => hasField(value, 'price_per_hour'));
  if (priced.length === 0 && objects.length > 0)
    return notApplicable(`prices of ${what}`, `none of the ${what} shows a price_per_hour`);
  return judgeEach(
    priced,
    `${what} with a price`,
    ({ value }) => {
      const price = numberField(value, 'price_per_hour') ?? 0;
      if (price >= 0) return undefined;
      return {
        expected: 'a price in USD per hour that is not below zero',
        actual: `price_per_hour is ${price}, of ${shortJson(stringField(value, 'id'))}`,
      };
    },
    ({ exchange }) => exchange,
  );
}

interface Pair {
  instance: JsonObject;
  exchange: Exchange;
  /** Every observation of its offer. */
  offers: readonly JsonObject[];
}

/** Every observation of the run's instances, with their offers. Throws `MissingEvidence` if there is none. */
function withOffers(evidence: Evidence): Pair[] {
  evidence.steps('create/post');
  const offers = Map.groupBy(seenOffers(evidence), ({ id }) => id);
  return evidence.instances.flatMap(({ observations }) =>
    observations.flatMap(({ instance, exchange }): Pair[] => {
      const of = offers.get(stringField(instance, 'configuration_id') ?? '') ?? [];
      return instance === undefined || of.length === 0
        ? []
        : [{ instance, exchange, offers: of.map(({ offer }) => offer) }];
    }),
  );
}

function judgePriceOfOffer(evidence: Evidence): Finding {
  const pairs = withOffers(evidence);
  const priced = pairs.flatMap(({ instance, offers, exchange }) => {
    const price = numberField(instance, 'price_per_hour');
    const shown = pricesOf(offers);
    return price === undefined || price < 0 || shown.length === 0 ? [] : [{ price, shown, offers, exchange }];
  });
  if (priced.length === 0 && pairs.length > 0)
    return notApplicable('prices of instances', 'no instance of an offer with a price shows its own');
  return judgeEach(
    priced,
    'instances with a price',
    ({ price, shown, offers }) => {
      const isSpot = offers.some((offer) => stringField(offer, 'instance_type') === 'SPOT');
      const isPriceOfOffer = isSpot
        ? price <= Math.max(...shown) * MOST_TIMES
        : shown.some((each) => Math.abs(each - price) <= each * ROUNDING);
      return isPriceOfOffer
        ? undefined
        : {
            expected: `${listed(shown.map(String))}, the price of its offer`,
            actual: `price_per_hour is ${price}`,
          };
    },
    ({ exchange }) => exchange,
  );
}

/** Only SPOT is priced dynamically. A STOPPED instance may show what it costs then. */
function judgePriceKept(evidence: Evidence): Finding {
  const typeOf = offerTypes(evidence);
  const compared = evidence.instances
    .filter((timeline) => typeOf(timeline) !== 'SPOT')
    .flatMap(({ observations }) =>
      pairs(
        observations.filter(
          ({ instance, status }) =>
            ['PROVISIONING', 'ONLINE'].includes(status) && hasField(instance, 'price_per_hour'),
        ),
      ),
    );
  if (compared.length === 0)
    return notApplicable('prices of instances', 'no instance shows a price twice, or it is SPOT');
  return judgeEach(
    compared,
    'reads of a price that follow one another',
    ([before, after]) => {
      const [was, is] = [before, after].map(({ instance }) => numberField(instance, 'price_per_hour'));
      return was === is
        ? undefined
        : { expected: `price_per_hour ${was}, as before`, actual: `price_per_hour is ${is}` };
    },
    ([, after]) => after.exchange,
  );
}

/** A figure of an instance that differs from its offer's by such a factor is in another unit. */
function judgeUnits(evidence: Evidence, fields: readonly string[], factor: number): Finding {
  const compared = withOffers(evidence).flatMap(({ instance, offers, exchange }) =>
    fields.flatMap((field) => {
      // A stopped instance may have the price of its disk.
      const isOff = !['PROVISIONING', 'ONLINE'].includes(stringField(instance, 'status') ?? '');
      if (field === 'price_per_hour' && isOff) return [];
      const shown = numberField(instance, field) ?? 0;
      const ofOffer = field === 'price_per_hour' ? pricesOf(offers) : figuresOf(offers, [field]);
      return shown > 0 && ofOffer.length > 0 ? [{ field, shown, ofOffer, exchange }] : [];
    }),
  );
  if (compared.length === 0)
    return notApplicable(`${listed([...fields])} of instances`, 'no instance shows what its offer does, too');
  return judgeEach(
    compared,
    `figures of instances (${listed([...fields])})`,
    ({ field, shown, ofOffer }) =>
      ofOffer.some((one) => shown < one * factor && one < shown * factor)
        ? undefined
        : {
            expected: `${field} in the unit of its offer, which has ${listed(ofOffer.map(String))}`,
            actual: `${field} is ${shown}`,
          },
    ({ exchange }) => exchange,
  );
}

/** The prices with which an offer was shown; none if it shows none, or 0. */
function pricesOf(offers: readonly JsonObject[]): number[] {
  return figuresOf(offers, ['price_per_hour', 'spot_price_per_hour']);
}

function figuresOf(offers: readonly JsonObject[], fields: readonly string[]): number[] {
  const figures = offers.flatMap((offer) => fields.map((field) => numberField(offer, field) ?? 0));
  return [...new Set(figures.filter((figure) => figure > 0))];
}

function judgeOffered(evidence: Evidence): Finding {
  const pairs = withOffers(evidence);
  const compared = pairs.filter(({ instance, offers }) =>
    OFFERED.some((field) => hasField(instance, field) && offers.some((offer) => hasField(offer, field))),
  );
  if (compared.length === 0 && pairs.length > 0)
    return notApplicable('sizes of instances', 'no instance shows vcpus, memory_gb, gpu_count or gpu_type');
  return judgeEach(
    compared,
    'instances with sizes',
    ({ instance, offers }) => {
      const strange = OFFERED.filter((field) => disagreesWithOffers(instance, offers, field));
      if (strange.length === 0) return undefined;
      const [offer] = offers;
      return {
        expected: listed(
          strange.map((field) => `${field} ${shortJson(offer?.[field])}, as its offer has it`),
        ),
        actual: listed(strange.map((field) => `${field} ${shortJson(instance[field])}`)),
      };
    },
    ({ exchange }) => exchange,
  );
}

/** Whether the instance disagrees with every observation of its offer, which may change during the run. */
function disagreesWithOffers(instance: JsonObject, offers: readonly JsonObject[], field: string): boolean {
  if (!hasField(instance, field)) return false;
  const known = offers.filter((offer) => hasField(offer, field));
  return known.length > 0 && known.every((offer) => offer[field] !== instance[field]);
}
