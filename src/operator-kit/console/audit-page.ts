import type { AuditReader, AuditRecord } from '../model.ts';
import type { Page } from './deps.ts';
import { badge, type Column, clockTime, given, html, live, named, table, withQuery } from './parts.ts';

const PAGE = 100;

/** The actions of operators, newest first. `linkOf` renders the object of a row. */
export function auditPageOf(
  linkOf: (subject: string) => unknown,
): Page<{ store: { read: { audit: AuditReader } } }> {
  const columns = columnsOf(linkOf);
  return async ({ store: { read } }, { query }) => {
    const actor = query('actor');
    const action = query('action');
    const subject = query('subject');
    const before = Number(query('before'));
    const found = await read.audit.page({
      limit: PAGE + 1,
      ...(actor !== undefined && { actor }),
      ...(action !== undefined && { action }),
      ...(subject !== undefined && { subject }),
      ...(Number.isSafeInteger(before) && before > 0 && { before }),
    });
    const shown = found.slice(0, PAGE);
    const last = found.length > PAGE ? shown.at(-1) : undefined;
    return {
      title: 'Audit',
      body: html`<div class="head"><h1>Audit log</h1><span class="soft">actions of operators, the newest first</span></div>
<form class="card filter" action="/console/audit">
<label class="field grow"><span>Operator</span><input name="actor" value="${actor ?? ''}"></label>
<label class="field grow"><span>Action, such as alarm.acknowledge</span><input name="action" value="${action ?? ''}"></label>
<label class="field grow"><span>Subject</span><input name="subject" value="${subject ?? ''}"></label>
<button class="primary">Find</button><a class="button" href="/console/audit">Clear</a></form>
${live('audit', table(columns, shown, 'No entry matches.'))}
${
  last === undefined
    ? ''
    : html`<nav class="pager"><a class="button" rel="next" href="${withQuery('/console/audit', { actor, action, subject, before: String(last.id) })}">Older »</a></nav>`
}`,
    };
  };
}

function columnsOf(linkOf: (subject: string) => unknown): readonly Column<AuditRecord>[] {
  return [
    { head: 'When', cell: ({ at }) => clockTime(at) },
    { head: 'Who', cell: ({ actor }) => named(actor) },
    {
      head: 'From',
      cell: ({ source, address }) =>
        html`${source}${address === null ? '' : html` <span class="soft">${address}</span>`}`,
    },
    { head: 'What', cell: ({ action }) => html`<code>${action}</code>` },
    {
      head: 'To what',
      cell: ({ subject }) => (subject === null ? '' : linkOf(subject)),
    },
    {
      head: 'Outcome',
      cell: ({ outcome }) =>
        badge(outcome, outcome === 'done' ? 'good' : outcome === 'refused' ? 'wait' : 'bad'),
    },
    {
      head: 'Particulars',
      cell: ({ detail }) =>
        Object.keys(detail).length === 0
          ? ''
          : html`<code class="small">${given(JSON.stringify(detail))}</code>`,
    },
  ];
}
