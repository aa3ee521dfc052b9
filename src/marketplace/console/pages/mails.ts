import { actionForm } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  type Column,
  choice,
  count,
  given,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { resendMail } from '../../operate/actions.ts';
import { listMails, type MailRow, mailStateSchema } from '../../operate/views/mails.ts';
import { pageAfter } from '../../operate/views/pages.ts';
import type { Page } from '../deps.ts';

const PATH = '/console/mails';

export const mailsPage: Page = async ({ store: { read } }, { query, now, session }) => {
  const to = query('to');
  const state = mailStateSchema.safeParse(query('state')).data;
  const after = pageAfter(query('after'));
  const { mails, waiting, next } = await listMails(read, { to, state, after });
  return {
    title: 'Mails',
    body: html`<div class="head"><h1>Mails</h1><span class="soft">${count(waiting)} waiting to be sent</span></div>
<form class="card filter" action="${PATH}">
<label class="field grow"><span>To this address</span><input name="to" value="${to ?? ''}"></label>
${choice('state', 'State', mailStateSchema.options, state)}
<button class="primary">Find</button><a class="button" href="${PATH}">Clear</a></form>
${live('mails', table(columnsAt(now, session.csrf), mails, 'No mails found.', now))}
${next === null ? '' : html`<nav class="pager"><a class="button" rel="next" href="${withQuery(PATH, { to, state, after: next })}">Older »</a></nav>`}`,
  };
};

function columnsAt(now: number, csrf: string): readonly Column<MailRow>[] {
  return [
    'state',
    {
      head: 'Mail',
      cell: ({ subject, kind, last_error: error }) =>
        html`${named(subject)}<span class="why">${kind}</span>${error === null ? '' : html`<span class="why">${given(error)}</span>`}`,
    },
    'to',
    'created_at',
    {
      head: 'Sent, given up or next try',
      cell: ({ sent_at: sent, failed_at: failed, due_at: due }) => ago(sent ?? failed ?? due, now),
    },
    'attempts',
    {
      head: 'Action',
      cell: ({ id, state }) => (state === 'sent' ? '' : actionForm(resendMail, csrf, { mailId: id })),
    },
  ];
}
