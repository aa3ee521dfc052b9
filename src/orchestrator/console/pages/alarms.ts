import { counted } from '../../../contract/counted.ts';
import { actionForm } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  badge,
  type Column,
  given,
  type Html,
  html,
  live,
  named,
  table,
} from '../../../operator-kit/console/parts.ts';
import type { AlarmRecord } from '../../model/alarm.ts';
import { acknowledgeAlarms } from '../../operate/actions/alarms.ts';
import type { Page } from '../deps.ts';
import { instanceLink } from '../instance-parts.ts';

/** The open alarms of every server on the database. */
export const alarmsPage: Page = async ({ store: { read } }, { now, session }) => {
  const alarms = await read.alarms.list();
  return {
    title: 'Alarms',
    body: html`<div class="head"><h1>Alarms</h1><span class="soft">${counted(alarms.length, 'alarm')}, oldest first</span></div>
${live('alarms', table(columnsAt(now, session.csrf), alarms, 'No alarm is open.'))}`,
  };
};

function columnsAt(now: number, csrf: string): readonly Column<AlarmRecord>[] {
  return [
    {
      head: 'Alarm',
      cell: ({ kind, acknowledgedBy }) => badge(kind, acknowledgedBy === null ? 'bad' : 'wait'),
    },
    { head: 'About', cell: subjectOf },
    {
      head: 'Problem',
      cell: ({ text }) => given(text),
    },
    { head: 'Since', cell: ({ since }) => ago(since, now) },
    { head: 'Last seen', cell: ({ lastSeenAt }) => ago(lastSeenAt, now) },
    {
      head: 'Acknowledged by',
      cell: ({ kind, subject, acknowledgedBy }) =>
        acknowledgedBy === null
          ? actionForm(acknowledgeAlarms, csrf, { kind, subject })
          : named(acknowledgedBy),
    },
  ];
}

/** The subject, with a link to its page. */
export function subjectOf({ kind, subject, platform }: AlarmRecord): Html | '' {
  if (subject.startsWith('inst-')) return instanceLink(subject);
  if (kind === 'orphan_machine' || kind === 'orphan_volume' || kind === 'row_lost')
    return html`<a href="/console/orphans" class="mono">${subject}</a>`;
  if (platform !== null) return html`<a href="/console/platforms">${named(subject)}</a>`;
  return named(subject);
}
