import { formatUsd } from '../../resources/budget.ts';
import { duration } from '../../text/wording.ts';
import type { Report, ReportResource } from '../report.ts';
import { plural } from '../words.ts';
import { folded, html, type Markup } from './markup.ts';

/** What the run created and what it cost. */
export function receipt({ resources, cost_usd, unpriced_resources }: Report): Markup {
  const total = html`<tr><th colspan="4">In all, estimated by the price of the offers</th><td class="num"><strong>${formatUsd(cost_usd)}</strong></td><td></td></tr>`;
  const content = html`<div class="card scroll"><table><thead><tr><th>Made</th><th>For</th><th class="num">Lived</th><th class="num">An hour</th><th class="num">Cost</th><th>Now</th></tr></thead>
<tbody>${resources.map(row)}${total}</tbody></table>
${resources.length === 0 ? html`<p class="tally">The run made nothing.</p>` : ''}
${unpriced_resources > 0 ? html`<p class="tally">${plural(unpriced_resources, 'resource')} had no price and is not in the sum.</p>` : ''}</div>`;
  return folded(html`<h2 id="cost">What it cost</h2>`, content);
}

const STATES: Readonly<Record<ReportResource['state'], string>> = {
  made: 'may still run',
  unknown: 'may exist',
  refused: 'refused, never made',
  gone: 'gone',
};

function row({
  type,
  name,
  id,
  step,
  state,
  lifetime_ms,
  price_per_hour_usd,
  estimated_usd,
}: ReportResource): Markup {
  return html`<tr><td>${type} <code>${name}</code>${id === undefined ? '' : html`<br><code class="soft">${id}</code>`}</td>
<td>${step}</td><td class="num">${lifetime_ms === undefined ? '' : duration(lifetime_ms)}</td>
<td class="num">${price_per_hour_usd === undefined ? 'unknown' : formatUsd(price_per_hour_usd)}</td>
<td class="num">${estimated_usd === undefined ? '' : formatUsd(estimated_usd)}</td><td>${STATES[state]}</td></tr>`;
}

/** The settings of the run, so that it can be repeated. */
export function settings(report: Report): Markup {
  const { settings, only, round_trips_ms, run_requirements_digest } = report;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Poll interval', duration(settings.poll_interval_ms)],
    ['Patience for ONLINE', duration(settings.ready_timeout_ms)],
    ['Limits', `${formatUsd(settings.max_cost_usd)}, ${plural(settings.max_minutes, 'minute')}`],
    ['Second key', settings.has_second_key ? 'yes' : 'no'],
    ['Key of another account', settings.has_other_account_key === true ? 'yes' : 'no'],
    ['Offer', settings.offer],
    ['Region', settings.region],
    [
      'Race',
      settings.race === undefined
        ? undefined
        : `${settings.race.offer}, ${plural(settings.race.units, 'unit')}`,
    ],
    ['Only', only?.join(', ')],
    [
      'Round trip to the target',
      round_trips_ms.length === 0 ? 'unknown' : `${Math.min(...round_trips_ms)} ms`,
    ],
    ['Ended', report.end === undefined ? 'it did not' : report.end.reason],
    ['Suite', report.suite_version],
    ['Requirements', report.requirements_digest],
    ['Requirements of the run', run_requirements_digest],
    ['User-Agent', report.user_agent === '' ? 'none (--plain)' : report.user_agent],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [html`<tr><th>${name}</th><td>${value}</td></tr>`],
  );
  return html`<h2 id="settings">How it was made</h2><div class="scroll card"><table><tbody>${lines}</tbody></table></div>`;
}
