import { formatUsd } from '../resources/budget.ts';
import { printable } from '../text/printable.ts';
import type { Plan, PlannedPurchase } from './plan.ts';

const SHOWN_CHARS = 60;
const LINE_CHARS = 110;

/** The plan as text. */
export function toPlanText(plan: Plan): string {
  const { level, scenarios, checks, minutes } = plan;
  const width = Math.max(...scenarios.map(({ id }) => id.length), 0);
  return [
    `A run at level ${level}: ${checks.length} checks, about ${minutes.typical} minutes, at most ${minutes.worst}.`,
    '',
    'What it does',
    ...scenarios.map(({ id, title }) => `  ${id.padEnd(width)}  ${title}`),
    '',
    'What it checks (`explain <id>` explains a check)',
    ...wrapped(checks),
    '',
    ...purchaseLines(plan),
    '',
    costLine(plan),
    ...refusalLines(plan),
    '',
  ].join('\n');
}

function wrapped(ids: readonly string[]): string[] {
  const lines: string[] = [];
  for (const id of ids) {
    const last = lines.at(-1);
    if (last === undefined || last.length + id.length + 1 > LINE_CHARS) lines.push(`  ${id}`);
    else lines[lines.length - 1] = `${last} ${id}`;
  }
  return lines;
}

function purchaseLines({ purchases }: Plan): string[] {
  if (purchases.length === 0) return ['It creates nothing.'];
  const rows = purchases.map((purchase) => [
    purchase.type,
    placeOf(purchase),
    purchase.price_per_hour === undefined ? 'no price' : `${formatUsd(purchase.price_per_hour)}/h`,
    `${purchase.longest_life_minutes} min`,
    purchase.worst_case_usd === undefined ? '' : formatUsd(purchase.worst_case_usd),
    purchase.what,
  ]);
  const head = ['', 'OFFER', 'PRICE', 'AT MOST', 'WORST', 'FOR'];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]): string =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd();
  return ['What it creates, and destroys again', line(head), ...rows.map(line)];
}

function placeOf({ type, offer, region }: PlannedPurchase): string {
  if (offer === undefined) return type === 'volume' ? '' : 'nothing is available';
  return `${printable(offer, SHOWN_CHARS)} in ${printable(region ?? '', SHOWN_CHARS)}`;
}

function refusalLines({ purchases, if_accepted }: Plan): string[] {
  if (purchases.length === 0) return [];
  const count = if_accepted.reduce((sum, mistake) => sum + mistake.count, 0);
  const usd = if_accepted.reduce((sum, { worst_case_usd }) => sum + (worst_case_usd ?? 0), 0);
  return [
    'Requests that must be refused cost nothing. If one is accepted by mistake, its resource is destroyed at once; none is sent',
    'that could exceed the cap.',
    `A target that accepts them sells at most ${count} so, for up to ${formatUsd(usd)}, which is included; then the rest is not sent.`,
  ];
}

function costLine({ worst_case_usd, max_cost_usd, unpriced, purchases }: Plan): string {
  if (purchases.length === 0) return 'It costs nothing.';
  const cost = `It may cost up to ${formatUsd(worst_case_usd)}; the cap (--max-cost) is ${formatUsd(max_cost_usd)}.`;
  if (unpriced.volumes === 0) return cost;
  return `${cost} Not included: ${unpriced.volumes} of the smallest volumes, whose price is known only after they are created.`;
}
