import { duration } from '../../text/wording.ts';
import type { Excerpt, Reference, Report, ReportExchange, ReportLogin, ReportTrace } from '../report.ts';
import { atRunTime, loginInWords, wallTime } from '../words.ts';
import { html, type Markup } from './markup.ts';

/** The request and the answer, or the login, that a check refers to. */
export function evidence(reference: Reference, report: Report): Markup {
  if ('exchange' in reference) {
    const exchange = report.exchanges.find(({ n }) => n === reference.exchange);
    return exchange === undefined ? html`` : exchangeDetails(exchange);
  }
  const login = report.logins.find(({ n }) => n === reference.login);
  return login === undefined ? html`` : loginDetails(login);
}

function exchangeDetails(exchange: ReportExchange): Markup {
  const { method, path, status, failure, at_ms, at, took_ms, request_id, user_agent, curl } = exchange;
  const came = status === undefined ? 'no answer' : `${status}`;
  return html`<details class="exchange">
<summary><code>${method} ${path}</code> → <strong>${came}</strong>
<span class="soft">at ${atRunTime(at_ms)}, in ${duration(took_ms)}</span></summary>
<div>
${failure === undefined ? '' : html`<p>No answer came: ${failure.message}</p>`}
<div><span class="label">To look for in the server’s log (${wallTime(at)}, with the ${exchange.credential})</span>
${
  request_id === ''
    ? ''
    : html`<pre>X-Request-Id: ${request_id}
User-Agent: ${user_agent}</pre>`
}</div>
${curl === undefined ? '' : labelled('To try it again, with your key in $BERTH_API_KEY', html`<pre>${curl}</pre>`)}
${labelled(
  'Request',
  html`<pre>${method} ${path}
${headers(exchange.request_headers)}${body(exchange.request_body)}</pre>`,
)}
${
  status === undefined
    ? ''
    : labelled(
        'Answer',
        html`<pre>${status}
${headers(exchange.answer_headers ?? {})}${body(exchange.answer_body)}</pre>`,
      )
}
</div>
</details>`;
}

function labelled(label: string, content: Markup): Markup {
  return html`<div><span class="label">${label}</span>${content}</div>`;
}

function headers(all: Readonly<Record<string, string>>): string {
  return Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');
}

function body(excerpt: Excerpt | undefined): string {
  if (excerpt === undefined || excerpt.text === '') return '';
  const more = excerpt.more > 0 ? `\n… (${excerpt.more} more characters)` : '';
  return `\n${excerpt.text}${more}`;
}

function loginDetails(login: ReportLogin): Markup {
  const { at_ms, at, instance_id, command, host_key, exit_code, stdout } = login;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['Instance', instance_id],
    ['Command', command],
    ['Host key', host_key],
    ['Exit code', exit_code === undefined ? undefined : String(exit_code)],
  ];
  return html`<details class="exchange">
<summary>SSH: ${loginInWords(login)} <span class="soft">at ${atRunTime(at_ms)}</span></summary>
<div><dl class="facts"><div><dt>Time</dt><dd>${wallTime(at)}</dd></div>${rows.flatMap(([name, value]) =>
    value === undefined ? [] : [html`<div><dt>${name}</dt><dd>${value}</dd></div>`],
  )}</dl>
${stdout === undefined ? '' : labelled('Output', html`<pre>${body(stdout)}</pre>`)}</div>
</details>`;
}

/** The observations of an instance, with times. */
export function traceTable({ instance_id, name, earlier, later, rows }: ReportTrace): Markup {
  const left = (count: number, when: string): Markup =>
    count === 0 ? html`` : html`<tr><td class="soft" colspan="4">… ${count} ${when}</td></tr>`;
  return html`<div class="scroll"><table><caption>What was seen of instance ${instance_id} (${name})</caption>
<thead><tr><th>From</th><th>To</th><th>Status</th><th>Seen by</th></tr></thead><tbody>
${left(earlier, 'earlier')}${rows.map(
  ({ from_ms, to_ms, at, status, by, times, is_problem }) => html`<tr${is_problem ? html` class="here"` : ''}>
<td class="nowrap" title="${at}">${atRunTime(from_ms)}</td><td class="nowrap">${times > 1 ? atRunTime(to_ms) : ''}</td>
<td><strong>${status}</strong>${is_problem ? ' ← here' : ''}</td><td>${by.join(', ')}${times > 1 ? ` × ${times}` : ''}</td></tr>`,
)}${left(later, 'later')}</tbody></table></div>`;
}
