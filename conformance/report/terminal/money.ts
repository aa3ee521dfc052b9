import { formatUsd } from '../../resources/budget.ts';
import { duration } from '../../text/wording.ts';
import type { Report, ReportResource } from '../report.ts';
import { plural } from '../words.ts';
import type { Page } from './paint.ts';

/** What the run created, and what it cost. */
export function receipt(page: Page, report: Report): void {
  const made = report.resources.filter(({ state }) => state !== 'refused');
  const refused = report.resources.length - made.length;
  page.heading('COST');
  for (const resource of made) page.line('  ', receiptLine(resource));
  if (refused > 0)
    page.line('  ', [`${plural(refused, 'create')} refused by the target, free of cost`, 'dim']);
  if (made.length === 0) page.line('  nothing was made');
  page.line('  ', [`${formatUsd(report.cost_usd)} in all, by the price of the offers`, 'bold']);
  if (report.unpriced_resources > 0)
    page.text(
      `without ${plural(report.unpriced_resources, 'resource')} whose price is not known`,
      2,
      'yellow',
    );
}

function receiptLine(resource: ReportResource): string {
  const { type, name, id, state, lifetime_ms = 0, price_per_hour_usd, estimated_usd } = resource;
  const price = price_per_hour_usd === undefined ? 'no price' : `${formatUsd(price_per_hour_usd)} an hour`;
  const cost = estimated_usd === undefined ? '' : ` = ${formatUsd(estimated_usd)}`;
  const now = state === 'gone' ? 'gone' : state;
  return `${type} ${name}${id === undefined ? '' : ` (${id})`}: ${duration(lifetime_ms)} at ${price}${cost}, ${now}`;
}

/** The resources that may still be running, and how to destroy them: printed last. */
export function leftoversWarning(page: Page, report: Report): void {
  const { leftovers, sweep_command } = report;
  if (leftovers.length === 0) return;
  page.heading(`MAY STILL BE RUNNING AND BILLING: ${plural(leftovers.length, 'resource').toUpperCase()}`);
  for (const { type, name, id, how, note, command, price_per_hour_usd } of leftovers) {
    const price = price_per_hour_usd === undefined ? '' : `, ${formatUsd(price_per_hour_usd)} AN HOUR`;
    page.line('  ', [
      `${type.toUpperCase()} ${name}${id === undefined ? '' : ` (${id})`}${price}`,
      'bold',
      'red',
    ]);
    if (note !== undefined) page.text(note, 4);
    page.text(`${how}${command === undefined ? '' : ':'}`, 4);
    if (command !== undefined) page.command(command, 6);
    page.blank();
  }
  if (sweep_command === undefined) return;
  page.line('  ALL OF THEM AT ONCE:');
  page.command(sweep_command, 6);
}
