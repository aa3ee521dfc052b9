import { formatUsd } from '../../resources/budget.ts';
import { duration } from '../../text/wording.ts';
import type { Verdict } from '../../verdict/judge.ts';
import type { Counts } from '../../verdict/outcome.ts';
import { notAskedIn } from '../features.ts';
import type { Report, ReportCheck, ReportTier, TierState } from '../report.ts';
import { foundChecks, plural, VERDICT_WORDS, verdictWord, wallTime } from '../words.ts';
import { html, type Markup } from './markup.ts';

const MAX_GAPS = 5;

/** The verdict whose colours an outcome uses. */
const OUTCOME_TONES: Readonly<Record<Report['outcome'], Verdict>> = {
  CONFORMANT: 'pass',
  'NON-CONFORMANT': 'fail',
  INCOMPLETE: 'not_tested',
};

const TIER_TONES: Readonly<Record<TierState, Verdict>> = {
  conformant: 'pass',
  'non-conformant': 'fail',
  incomplete: 'not_tested',
  absent: 'not_applicable',
  'not looked at': 'not_selected',
};

/** An explanation of each tier. */
const TIER_WORDS: Readonly<Record<ReportTier['tier'], string>> = {
  compute: 'Offers and instances. Required.',
  storage: 'Volumes. Optional.',
  token: 'Short-lived tokens. Optional.',
};

/** An explanation of each outcome. */
const OUTCOME_WORDS: Readonly<Record<Report['outcome'], string>> = {
  CONFORMANT: 'Everything that a run of this level tests conforms to the contract.',
  'NON-CONFORMANT': 'The target breaks some requirements of the contract. Each one is explained below.',
  INCOMPLETE: 'No failure was found, but the run could not test enough to confirm conformance.',
};

/** The outcome and the facts of the run. */
export function outcomeCard(report: Report): Markup {
  const { outcome, why, base_url, level, started_at, duration_ms, cost_usd, contract_version, run_id } =
    report;
  const left = notAskedIn(report);
  return html`<section class="outcome ${OUTCOME_TONES[outcome]}">
<h1>${outcome}</h1>
<p class="why">${sentence(why)}</p>
<p class="soft">${OUTCOME_WORDS[outcome]}</p>
${left.length === 0 ? '' : html`<p><strong>Not asked:</strong> ${left.join(', ')}.</p>`}
<dl class="facts">
<div class="wide"><dt>Target</dt><dd>${base_url}</dd></div>
${fact('Level', level)}${fact('Date', wallTime(started_at))}${fact('Took', duration(duration_ms))}
${fact('Cost', `${formatUsd(cost_usd)}${report.unpriced_resources > 0 ? ' and more' : ''}`)}
${fact('Contract', contract_version)}${fact('Run', run_id)}
</dl>
</section>`;
}

function fact(name: string, value: string): Markup {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

/** The resources that may still be running: the most urgent part. */
export function alarm({ leftovers, sweep_command }: Report): Markup {
  if (leftovers.length === 0) return html``;
  const items = leftovers.map(
    ({ type, name, id, how, note, command, price_per_hour_usd }) => html`<li>
<strong>${type} ${name}${id === undefined ? '' : ` (${id})`}</strong>${
      price_per_hour_usd === undefined ? '' : `, ${formatUsd(price_per_hour_usd)} an hour`
    }${note === undefined ? '' : html`<br><span class="soft">${note}</span>`}
<br>${sentence(how)}${command === undefined ? '' : html`<pre>${command}</pre>`}</li>`,
  );
  return html`<section class="alarm" id="leftovers">
<h2>${plural(leftovers.length, 'resource')} may still be running and billing</h2>
<p>All of them at once: <code>${sweep_command}</code>. One by one, with your key in <code>$BERTH_API_KEY</code>:</p>
<ul class="also">${items}</ul>
</section>`;
}

/** A card for each tier: its state, and its checks as a bar. */
export function tierCards({ tiers }: Report): Markup {
  const cards = tiers.map(
    ({ tier, state, counts }) => html`<div class="card">
<h3>${capital(tier)}</h3><p class="tally">${TIER_WORDS[tier]}</p>
${bar(counts)}
<p class="state ${TIER_TONES[state]}">${capital(state)}</p>
<p class="tally">${tally(counts)}</p>
</div>`,
  );
  return html`<section class="tiers">${cards}</section>`;
}

const NOT_MADE = ['not_asked', 'not_applicable', 'not_selected', 'excluded'] as const;
/** From left to right: checks that were made, best first; then the others. */
const BAR = ['pass', 'warn', 'not_tested', 'fail', ...NOT_MADE] as const;

function bar(counts: Counts): Markup {
  const shown = BAR.filter((verdict) => (counts[verdict] ?? 0) > 0);
  const parts = shown.map((verdict) => {
    const isQuiet = NOT_MADE.some((one) => one === verdict);
    return html`<i class="${verdict}${isQuiet ? ' none' : ''}" style="flex-grow:${counts[verdict]}"></i>`;
  });
  return html`<div class="bar" role="img" aria-label="${tally(counts)}">${parts}</div>`;
}

function tally(counts: Counts): string {
  const shown = VERDICT_WORDS.filter(({ verdict }) => (counts[verdict] ?? 0) > 0);
  return shown.map(({ verdict, word }) => `${counts[verdict]} ${word}`).join(' · ') || 'no checks';
}

/** The features as a table that is the same for each provider. */
export function features({ features: list = [] }: Report): Markup {
  const rows = list.map(
    ({ feature, state }) => html`<tr><th>${feature}</th><td class="state">${state}</td></tr>`,
  );
  return html`<h2 id="features">Features</h2><div class="scroll card"><table><tbody>${rows}</tbody></table></div>`;
}

/** The most important failures, in plain words. */
export function gaps(report: Report): Markup {
  const failed = foundChecks(report, 'fail').filter(({ check, leader }) => check.id === leader);
  const untested = report.checks.filter(({ verdict }) => verdict === 'not_tested');
  const all = [
    ...failed.map(({ check, finding }) => gap(check, finding.title)),
    ...untested.map((check) => gap(check, check.means ?? check.text)),
  ];
  const worst = all.slice(0, MAX_GAPS);
  if (worst.length === 0) return html``;
  const more = all.length - worst.length;
  return html`<h2 id="gaps">${failed.length > 0 ? 'What to mend, in this order' : 'What could not be tested'}</h2>
<ul class="gaps">${worst}</ul>
${more > 0 ? html`<p class="soft">And ${more} more, in the list below.</p>` : ''}`;
}

function gap(check: ReportCheck, title: string): Markup {
  return html`<li class="${check.verdict}"><span class="badge">${verdictWord(check.verdict)}</span>
<div><a href="#${check.id}">${title}</a><br>
<span class="soft">${check.reason}</span></div></li>`;
}

/** Adds a capital letter and a full stop. */
export function sentence(text: string): string {
  return `${capital(text)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

function capital(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
