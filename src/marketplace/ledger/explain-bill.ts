import { toDollars, usdFromMicroUsd } from '../../contract/values.ts';
import { toTimestamp, toTimestampOrNull } from '../contract/values.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import type { Reader } from '../model/store.ts';
import { unposted } from './balance.ts';
import { costOf } from './price-change.ts';

/** The cost of a deployment or a volume, for an operator. It includes the provider's price, which users do not see. */
export interface Bill {
  subjectId: string;
  segments: SegmentRecord[];
  /** The cost of each segment on each UTC day. */
  days: ReadonlyMap<string, readonly { day: number; amountMicroUsd: number }[]>;
  /** Charged to the balance. */
  postedMicroUsd: number;
  /** The cost since the last posting that the provider has confirmed. It is not charged yet. */
  unpostedMicroUsd: number;
  /** The provider's price for the posted time; null where it is unknown. */
  providerMicroUsd: number | null;
}

export async function readBill(
  read: Pick<Reader, 'ledger' | 'discounts'>,
  subjectId: string,
  now: number,
): Promise<Bill> {
  const segments = [
    ...(await read.ledger.segmentsOf('deployment', subjectId)),
    ...(await read.ledger.segmentsOf('volume', subjectId)),
  ];
  const open = segments.find(({ endedAt }) => endedAt === null);
  const discounts = open === undefined ? [] : await read.discounts.ofTeam(open.teamId);
  const [running] = await read.ledger.openSegmentsOfDeployments([subjectId]);
  const confirmedUntil = running?.confirmedUntil ?? null;
  const asked = segments.map(providerCostOf);
  const days = new Map<string, Awaited<ReturnType<Reader['ledger']['daysOf']>>>();
  for (const { id } of segments) days.set(id, await read.ledger.daysOf(id));
  return {
    subjectId,
    segments,
    days,
    postedMicroUsd: segments.reduce((sum, { postedMicroUsd }) => sum + postedMicroUsd, 0),
    unpostedMicroUsd: open === undefined ? 0 : unposted({ segment: open, confirmedUntil }, discounts, now),
    providerMicroUsd: asked.includes(null) ? null : asked.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
  };
}

/** A bill as text: one line per segment, and with `byDay` one per day of each segment. */
export function explainBill(
  { subjectId, segments, days, postedMicroUsd, unpostedMicroUsd, providerMicroUsd }: Bill,
  { byDay = false }: { byDay?: boolean } = {},
): string[] {
  const [first] = segments;
  if (first === undefined) return [`Nothing was billed for ${subjectId}.`];
  const isOpen = segments.some(({ endedAt }) => endedAt === null);
  return [
    ...segments.flatMap((segment) => [
      explainSegment(segment),
      ...(byDay ? (days.get(segment.id) ?? []).map(explainDay) : []),
    ]),
    `Charged to the balance of ${first.teamId}: ${toDollars(postedMicroUsd)}`,
    ...(isOpen ? [`Used since: ${toDollars(unpostedMicroUsd)}`] : []),
    ...(providerMicroUsd === null
      ? []
      : [
          `Charged by the provider for the same usage: ${toDollars(providerMicroUsd)}, margin: ` +
            toDollars(postedMicroUsd - providerMicroUsd),
        ]),
  ];
}

/** A bill as JSON; amounts in USD. */
export function billToJson(bill: Bill, { byDay = false }: { byDay?: boolean } = {}) {
  const { subjectId, segments, days, postedMicroUsd, unpostedMicroUsd, providerMicroUsd } = bill;
  return {
    id: subjectId,
    segments: segments.map((segment) => ({
      state: segment.state,
      from: toTimestamp(segment.startedAt),
      until: toTimestampOrNull(segment.endedAt),
      hourly_rate_usd: usdFromMicroUsd(segment.rateMicroUsdPerHour),
      original_hourly_rate_usd: usdFromMicroUsd(segment.originalRateMicroUsdPerHour),
      discount_percent: segment.discountPercentage,
      provider_hourly_rate_usd: usdOrNull(segment.providerRateMicroUsdPerHour),
      taken_usd: usdFromMicroUsd(segment.postedMicroUsd),
      ...(byDay && {
        days: (days.get(segment.id) ?? []).map(({ day, amountMicroUsd }) => ({
          day: toDay(day),
          taken_usd: usdFromMicroUsd(amountMicroUsd),
        })),
      }),
      margin_usd: usdOrNull(marginOf(segment.postedMicroUsd, providerCostOf(segment))),
    })),
    taken_usd: usdFromMicroUsd(postedMicroUsd),
    used_since_usd: usdFromMicroUsd(unpostedMicroUsd),
    provider_usd: usdOrNull(providerMicroUsd),
    margin_usd: usdOrNull(marginOf(postedMicroUsd, providerMicroUsd)),
  };
}

/** The provider's price for the posted time. */
function providerCostOf({
  providerRateMicroUsdPerHour: rate,
  startedAt,
  postedUntil,
}: SegmentRecord): number | null {
  return rate === null ? null : costOf(rate, postedUntil - startedAt);
}

function marginOf(postedMicroUsd: number, providerMicroUsd: number | null): number | null {
  return providerMicroUsd === null ? null : postedMicroUsd - providerMicroUsd;
}

function usdOrNull(microUsd: number | null): number | null {
  return microUsd === null ? null : usdFromMicroUsd(microUsd);
}

function explainSegment(segment: SegmentRecord): string {
  const { state, startedAt, endedAt, rateMicroUsdPerHour, postedMicroUsd } = segment;
  const span = `${toTimestamp(startedAt)} to ${endedAt === null ? 'now' : toTimestamp(endedAt)}`;
  return `${span}  ${state}  ${toDollars(rateMicroUsdPerHour)}/h${discountOf(segment)}  ${toDollars(postedMicroUsd)}${providerOf(segment)}`;
}

function explainDay({ day, amountMicroUsd }: { day: number; amountMicroUsd: number }): string {
  return `  ${toDay(day)}  ${toDollars(amountMicroUsd)}`;
}

function toDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function discountOf({ discountPercentage, originalRateMicroUsdPerHour }: SegmentRecord): string {
  if (discountPercentage === 0) return '';
  return ` (${discountPercentage} % off ${toDollars(originalRateMicroUsdPerHour)}/h)`;
}

function providerOf({ providerRateMicroUsdPerHour }: SegmentRecord): string {
  return providerRateMicroUsdPerHour === null
    ? ''
    : `  (provider ${toDollars(providerRateMicroUsdPerHour)}/h)`;
}
