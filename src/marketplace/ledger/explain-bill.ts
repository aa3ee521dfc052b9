import { usdFromMicroUsd, usdToDollars } from '../../contract/values.ts';
import { toTimestamp, toTimestampOrNull } from '../contract/values.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import type { Reader } from '../model/store.ts';
import { unposted } from './balance.ts';
import { costOf } from './price-change.ts';

export type Bill = Awaited<ReturnType<typeof readBill>>;
type BilledAtRate = Bill['segments'][number];

/**
 * The cost of a deployment or a volume in USD, for an operator: `taken` is charged to the balance, `used_since` is
 * confirmed and not charged yet. It includes the provider's price for the charged time, which users do not see; null
 * where it is unknown. With `byDay`, each segment has its cost on each UTC day.
 */
export async function readBill(
  read: Pick<Reader, 'ledger' | 'discounts'>,
  subjectId: string,
  now: number,
  { byDay = false }: { byDay?: boolean } = {},
) {
  const segments = [
    ...(await read.ledger.segmentsOf('deployment', subjectId)),
    ...(await read.ledger.segmentsOf('volume', subjectId)),
  ];
  const open = segments.find(({ endedAt }) => endedAt === null);
  const discounts = open === undefined ? [] : await read.discounts.ofTeam(open.teamId);
  const [running] = await read.ledger.openSegmentsOfDeployments([subjectId]);
  const confirmedUntil = running?.confirmedUntil ?? null;
  const taken = segments.reduce((sum, { postedMicroUsd }) => sum + postedMicroUsd, 0);
  const used = open === undefined ? 0 : unposted({ segment: open, confirmedUntil }, discounts, now);
  const costs = segments.map(providerCostOf);
  const provider = costs.includes(null) ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0);
  return {
    id: subjectId,
    segments: await Promise.all(
      segments.map(async (segment) => ({
        state: segment.state,
        from: toTimestamp(segment.startedAt),
        until: toTimestampOrNull(segment.endedAt),
        hourly_rate_usd: usdFromMicroUsd(segment.rateMicroUsdPerHour),
        original_hourly_rate_usd: usdFromMicroUsd(segment.originalRateMicroUsdPerHour),
        discount_percent: segment.discountPercentage,
        provider_hourly_rate_usd: usdOrNull(segment.providerRateMicroUsdPerHour),
        taken_usd: usdFromMicroUsd(segment.postedMicroUsd),
        ...(byDay && {
          days: (await read.ledger.daysOf(segment.id)).map(({ day, amountMicroUsd }) => ({
            day: new Date(day).toISOString().slice(0, 10),
            taken_usd: usdFromMicroUsd(amountMicroUsd),
          })),
        }),
        margin_usd: marginOf(segment.postedMicroUsd, providerCostOf(segment)),
      })),
    ),
    taken_usd: usdFromMicroUsd(taken),
    used_since_usd: usdFromMicroUsd(used),
    provider_usd: usdOrNull(provider),
    margin_usd: marginOf(taken, provider),
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
  return usdOrNull(providerMicroUsd === null ? null : postedMicroUsd - providerMicroUsd);
}

function usdOrNull(microUsd: number | null): number | null {
  return microUsd === null ? null : usdFromMicroUsd(microUsd);
}

/** A bill as text: one line per segment, each followed by its days. */
export function explainBill(bill: Bill): string[] {
  const { id, segments, taken_usd: taken, provider_usd: provider, margin_usd: margin } = bill;
  if (segments.length === 0) return [`Nothing was billed for ${id}.`];
  return [
    ...segments.flatMap((segment) => [
      explainSegment(segment),
      ...(segment.days ?? []).map((day) => `  ${day.day}  ${usdToDollars(day.taken_usd)}`),
    ]),
    `Charged to the balance of its team: ${usdToDollars(taken)}`,
    ...(segments.some(({ until }) => until === null)
      ? [`Used since: ${usdToDollars(bill.used_since_usd)}`]
      : []),
    ...(provider === null
      ? []
      : [
          `Charged by the provider for the same usage: ${usdToDollars(provider)}, margin: ${usdToDollars(margin ?? 0)}`,
        ]),
  ];
}

function explainSegment(segment: BilledAtRate): string {
  const { from, until, state, discount_percent: percent, provider_hourly_rate_usd: provider } = segment;
  const rate = `${usdToDollars(segment.hourly_rate_usd)}/h`;
  const discount =
    percent === 0 ? '' : ` (${percent} % off ${usdToDollars(segment.original_hourly_rate_usd)}/h)`;
  const atProvider = provider === null ? '' : `  (provider ${usdToDollars(provider)}/h)`;
  return `${from} to ${until ?? 'now'}  ${state}  ${rate}${discount}  ${usdToDollars(segment.taken_usd)}${atProvider}`;
}
