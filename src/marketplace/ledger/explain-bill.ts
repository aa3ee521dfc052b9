import { toTimestamp } from '../contract/values.ts';
import type { Reader } from '../ports/store.ts';
import type { SegmentRecord } from '../records/ledger-records.ts';
import { toDollars } from './dollars.ts';
import { unpostedOf } from './price-change.ts';

/** A deployment's or a volume's bill as text, a line for each segment. */
export async function explainBill(
  read: Pick<Reader, 'ledger' | 'discounts'>,
  subjectId: string,
  now: number,
): Promise<string[]> {
  const segments = [
    ...(await read.ledger.segmentsOf('deployment', subjectId)),
    ...(await read.ledger.segmentsOf('volume', subjectId)),
  ];
  const [first] = segments;
  if (first === undefined) return [`Nothing was billed for ${subjectId}.`];
  const posted = segments.reduce((sum, { postedMicroUsd }) => sum + postedMicroUsd, 0);
  const discounts = await read.discounts.ofTeam(first.teamId);
  const open = segments.find(({ endedAt }) => endedAt === null);
  return [
    ...segments.map(explainSegment),
    `Taken from the balance of ${first.teamId}: ${toDollars(posted)}`,
    ...(open === undefined ? [] : [`Used since: ${toDollars(unpostedOf(open, discounts, now))}`]),
  ];
}

function explainSegment(segment: SegmentRecord): string {
  const { state, startedAt, endedAt, rateMicroUsdPerHour, postedMicroUsd } = segment;
  const span = `${toTimestamp(startedAt)} to ${endedAt === null ? 'now' : toTimestamp(endedAt)}`;
  return `${span}  ${state}  ${toDollars(rateMicroUsdPerHour)}/h${discountOf(segment)}  ${toDollars(postedMicroUsd)}`;
}

function discountOf({ discountPercentage, originalRateMicroUsdPerHour }: SegmentRecord): string {
  if (discountPercentage === 0) return '';
  return ` (${discountPercentage} % off ${toDollars(originalRateMicroUsdPerHour)}/h)`;
}
