import type { Report, ReportCheck, ReportProblem } from '../report.ts';
import { atRunTime, foundChecks, VERDICT_WORDS, verdictWord, wallTime } from '../words.ts';
import { evidence, traceTable } from './exchange.ts';
import { folded, html, type Markup } from './markup.ts';
import { sentence } from './summary.ts';

/** Symbols in addition to words and colours, for accessibility. */
const SIGNS: Readonly<Record<ReportCheck['verdict'], string>> = {
  fail: '✕',
  warn: '!',
  not_tested: '?',
  pass: '✓',
  not_asked: '·',
  not_applicable: '–',
  not_selected: '·',
  excluded: '·',
};

/** All checks by verdict. Only failures are not folded, the first of each cause expanded. */
export function sections(report: Report): Markup {
  const leaders = new Set(report.findings.map(({ checks: [first] }) => first));
  return html`${VERDICT_WORDS.map(({ verdict, heading }) => {
    const found = foundChecks(report, verdict).map(({ check }) => check);
    const checks = [...new Set([...found, ...report.checks.filter((check) => check.verdict === verdict)])];
    if (checks.length === 0) return html``;
    const title = html`<h2 id="${verdict}">${heading} <span class="soft">${checks.length}</span></h2>`;
    const content = html`${checks.map((check) =>
      checkDetails(check, report, verdict === 'fail' && leaders.has(check.id)),
    )}`;
    return verdict === 'fail' || verdict === 'warn' ? html`${title}${content}` : folded(title, content);
  })}`;
}

function checkDetails(check: ReportCheck, report: Report, isOpen: boolean): Markup {
  const { id, verdict, level, tier, means, text, place, reason } = check;
  const isFailure = verdict === 'fail' || verdict === 'warn';
  return html`<details class="check ${verdict}"${isOpen ? html` open` : ''}>
<summary><span class="mono">${id} · ${level} · ${tier}</span><span class="badge">${SIGNS[verdict]} ${verdictWord(verdict)}</span>
<span class="means">${means ?? text}</span>${isFailure || verdict === 'pass' ? '' : html`<span class="why soft">${sentence(reason)}</span>`}</summary>
<div class="body" id="${id}">
<blockquote>“${text}”<br><span>${place}</span></blockquote>
${isFailure ? failure(check, report) : verdict === 'pass' ? html`<p>${sentence(reason)}</p>` : ''}
${proof(check, report)}
</div>
</details>`;
}

function proof({ verdict, proof: references = [], capability }: ReportCheck, report: Report): Markup {
  // The reason says it, and the target may well have it.
  if (verdict === 'not_asked') return html``;
  if (capability !== undefined) return html`<p class="soft">The target has no ${capability}.</p>`;
  return html`${references.map((reference) => evidence(reference, report))}`;
}

function failure(
  { problems = [], more_problems, seen, cause, traces = [] }: ReportCheck,
  report: Report,
): Markup {
  const [first, ...others] = problems;
  const often =
    seen === undefined || seen.of === 1 ? 'Seen ' : `Wrong in ${seen.wrong} of ${seen.of}, first `;
  const when = first?.at_ms === undefined ? '' : `at ${atRunTime(first.at_ms)} (${wallTime(first.at ?? '')})`;
  return html`${first === undefined ? '' : versus(first)}
${when === '' && (seen?.of ?? 1) === 1 ? '' : html`<p class="soft">${often}${when}.</p>`}
${
  others.length === 0
    ? ''
    : html`<div><span class="label">Also</span><ul class="also">${others.map(
        (problem) => html`<li>${also(problem, first)}</li>`,
      )}${more_problems === undefined ? '' : html`<li class="soft">and ${more_problems} more</li>`}</ul></div>`
}
${cause === undefined ? '' : html`<div class="cause"><span class="label">Likely cause</span>${cause}</div>`}
${first?.shown === undefined ? '' : evidence(first.shown, report)}
${distinct(problems).map((shown) => evidence(shown, report))}
${traces.map(traceTable)}`;
}

function versus({ expected, actual }: ReportProblem): Markup {
  return html`<div class="versus"><div class="pass"><span class="label">Expected</span><p>${expected}</p></div>
<div class="fail"><span class="label">Actual</span><p>${actual}</p></div></div>`;
}

function also({ expected, actual, at_ms }: ReportProblem, first: ReportProblem | undefined): string {
  const at = at_ms === undefined ? '' : `${atRunTime(at_ms)}: `;
  return `${at}${actual}${expected === first?.expected ? '' : ` (expected ${expected})`}`;
}

/** The distinct references of the problems after the first, without those of the first. */
function distinct([first, ...others]: readonly ReportProblem[]): NonNullable<ReportProblem['shown']>[] {
  const found = new Map(
    [first, ...others].flatMap((one) => (one?.shown ? [[JSON.stringify(one.shown), one.shown]] : [])),
  );
  found.delete(JSON.stringify(first?.shown));
  return [...found.values()];
}
