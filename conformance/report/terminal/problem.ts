import { duration } from '../../text/wording.ts';
import { toExcerpt } from '../excerpt.ts';
import type { Report, ReportCheck, ReportExchange, ReportProblem, ReportTrace } from '../report.ts';
import { atRunTime, loginInWords, wallTime } from '../words.ts';
import { LABEL_WIDTH, type Page } from './paint.ts';

const INDENT = 4;
const MAX_ALSO_CHARACTERS = 200;

/**
 * Explains a failure or a warning. The traces of instances in `traced` were already shown, and are repeated only if
 * they mark a problem of this check.
 */
export function failedCheck(page: Page, check: ReportCheck, report: Report, traced: Set<string>): void {
  const isWarning = check.verdict === 'warn';
  page.line(
    [isWarning ? 'WARN' : 'FAIL', 'bold', isWarning ? 'yellow' : 'red'],
    '  ',
    [check.id, 'bold'],
    [`  ${check.level}, ${check.tier}`, 'dim'],
  );
  page.field('clause', check.means ?? check.text, INDENT, 'bold');
  page.field('', `“${check.text}” (${check.place})`, INDENT, 'dim');
  const problems = check.problems ?? [];
  for (const problem of problems.slice(0, 1)) expectation(page, problem);
  page.field('seen', howOften(check), INDENT);
  for (const problem of problems.slice(1)) page.field('also', also(problem, problems[0]), INDENT);
  if (check.more_problems !== undefined) page.field('', `and ${check.more_problems} more`, INDENT);
  if (check.cause !== undefined) page.field('cause', check.cause, INDENT);
  const [first] = problems;
  if (first?.shown !== undefined) evidence(page, first.shown, report);
  for (const trace of check.traces ?? []) {
    const isNew = !traced.has(trace.instance_id) || trace.rows.some((row) => row.is_problem);
    if (isNew) traceTable(page, trace);
    traced.add(trace.instance_id);
  }
  page.blank();
}

function expectation(page: Page, { expected, actual }: ReportProblem): void {
  page.field('expected', expected, INDENT, 'green');
  page.field('actual', actual, INDENT, 'red');
}

function also({ expected, actual, at_ms }: ReportProblem, first: ReportProblem | undefined): string {
  const at = at_ms === undefined ? '' : `${atRunTime(at_ms)}: `;
  const instead = expected === first?.expected ? '' : ` (expected ${clip(expected)})`;
  return `${at}${clip(actual)}${instead}`;
}

function clip(text: string): string {
  const { text: start, more } = toExcerpt(text, MAX_ALSO_CHARACTERS);
  return more === 0 ? start : `${start}…`;
}

/** `3 of 40, first at +12.4 s (2026-03-01 10:00:12 UTC)`. */
function howOften({ seen, problems }: ReportCheck): string {
  const [first] = problems ?? [];
  const often = seen === undefined || seen.of === 1 ? 'once' : `${seen.wrong} of ${seen.of}`;
  if (first?.at_ms === undefined || first.at === undefined) return often;
  return `${often}, ${often === 'once' ? '' : 'first '}at ${atRunTime(first.at_ms)} (${wallTime(first.at)})`;
}

function evidence(page: Page, shown: NonNullable<ReportProblem['shown']>, report: Report): void {
  if ('exchange' in shown) {
    const exchange = report.exchanges.find(({ n }) => n === shown.exchange);
    if (exchange !== undefined) exchangeLines(page, exchange);
  } else {
    const login = report.logins.find(({ n }) => n === shown.login);
    if (login !== undefined) page.field('login', loginInWords(login), INDENT);
  }
}

function exchangeLines(page: Page, exchange: ReportExchange): void {
  const { method, path, status, failure, took_ms, curl } = exchange;
  const came = status === undefined ? `no answer (${failure?.message ?? 'lost'})` : `${status}`;
  page.field('request', `${method} ${path} → ${came} in ${duration(took_ms)}`, INDENT);
  if (exchange.request_id === '') page.field('in the log', `at ${wallTime(exchange.at)}`, INDENT);
  else {
    page.field('in the log', `X-Request-Id ${exchange.request_id}`, INDENT);
    page.field('', `User-Agent ${exchange.user_agent}`, INDENT);
  }
  if (curl === undefined) return;
  page.field('try', 'with the key in $BERTH_API_KEY:', INDENT);
  page.command(curl, INDENT + LABEL_WIDTH);
}

function traceTable(page: Page, trace: ReportTrace): void {
  page.field('trace', `of instance ${trace.instance_id} (${trace.name})`, INDENT);
  const margin = ' '.repeat(INDENT + LABEL_WIDTH);
  if (trace.earlier > 0) page.line(margin, [`… ${trace.earlier} earlier`, 'dim']);
  for (const row of trace.rows) {
    const until = row.times > 1 ? `… ${atRunTime(row.to_ms)}` : '';
    const by = `${row.by.join(', ')}${row.times > 1 ? ` ×${row.times}` : ''}`;
    const cells = `${atRunTime(row.from_ms).padEnd(13)} ${until.padEnd(15)} ${row.status.padEnd(13)} `;
    page.line(
      margin,
      row.is_problem === true ? [cells, 'red'] : cells,
      [by, 'dim'],
      row.is_problem ? ' ← here' : '',
    );
  }
  if (trace.later > 0) page.line(margin, [`… ${trace.later} later`, 'dim']);
}
