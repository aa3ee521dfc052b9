import type { AuditReader } from '../model.ts';
import { type AuditView, auditView } from '../views/audit.ts';
import type { Page } from './deps.ts';
import { type Column, given, html, live, table, withQuery } from './parts.ts';

const PAGE = 100;

/** The actions of operators, newest first. `linkOf` renders the object of a row. */
export function auditPageOf(
  linkOf: (subject: string) => unknown,
): Page<{ store: { read: { audit: AuditReader } } }> {
  const columns = columnsOf(linkOf);
  return async (deps, { query }) => {
    const actor = query('actor');
    const action = query('action');
    const subject = query('subject');
    const after = query('after');
    const wanted = { actor, action, subject, after: /^\d{1,15}$/.test(after ?? '') ? after : undefined };
    const { entries, next } = await auditView.read(deps, { ...wanted, limit: PAGE });
    return {
      title: 'Audit',
      body: html`<div class="head"><h1>Audit log</h1><span class="soft">actions of operators, the newest first</span></div>
<form class="card filter" action="/console/audit">
<label class="field grow"><span>Operator</span><input name="actor" value="${actor ?? ''}"></label>
<label class="field grow"><span>Action, such as alarm.acknowledge</span><input name="action" value="${action ?? ''}"></label>
<label class="field grow"><span>Subject</span><input name="subject" value="${subject ?? ''}"></label>
<button class="primary">Find</button><a class="button" href="/console/audit">Clear</a></form>
${live('audit', table(columns, entries, 'No entry matches.'))}
${
  next === null
    ? ''
    : html`<nav class="pager"><a class="button" rel="next" href="${withQuery('/console/audit', { actor, action, subject, after: next })}">Older »</a></nav>`
}`,
    };
  };
}

function columnsOf(linkOf: (subject: string) => unknown): readonly Column<AuditView>[] {
  return [
    'at',
    'actor',
    {
      head: 'From',
      cell: ({ source, address }) =>
        html`${source}${address === null ? '' : html` <span class="soft">${address}</span>`}`,
    },
    { head: 'What', cell: ({ action }) => html`<code>${action}</code>` },
    { head: 'To what', cell: ({ subject }) => (subject === null ? '' : linkOf(subject)) },
    'outcome',
    {
      head: 'Particulars',
      cell: ({ detail }) =>
        Object.keys(detail).length === 0
          ? ''
          : html`<code class="small">${given(JSON.stringify(detail))}</code>`,
    },
  ];
}
