import { counted } from '../../../contract/counted.ts';
import { csrfField } from '../../../operators/console/layout.ts';
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
} from '../../../operators/console/parts.ts';
import type { AlarmKind, AlarmRecord } from '../../model/alarm.ts';
import type { Page } from '../deps.ts';
import { instanceLink } from '../instance-parts.ts';

/** The remedy for each kind of alarm, a summary of docs/runbook.md. */
const REMEDIES: Readonly<Record<AlarmKind, string>> = {
  platform_down: 'Mend the network, the credentials or the platform. Berth goes on by itself.',
  platform_suspect:
    'Check that its key and project are still the right ones; accept the losses only if the machines are gone.',
  volumes_suspect: 'Look whether the storage pool is there. No volume counts as deleted meanwhile.',
  inventory_unknown: 'Ask the platform by `berth doctor`. After ten minutes nothing more of it is sold.',
  host_unknown: 'Put the host back into the configuration. Accept the losses only if it is gone for good.',
  losses_held: 'Compare with the platform’s own list. Accept the losses only if the machines are gone.',
  orphan_machine:
    'Look at it on the platform: it may cost money. Then `berth orphans adopt`, `release` or `rm`.',
  orphan_volume: 'Look at it on the platform: it may hold data. `berth orphans rm` removes it.',
  listing_incomplete:
    'Mend the platform, or the host that does not answer: until it is listed whole, rows that were lost read 404.',
  row_lost: 'Create its account if that is missing. Otherwise `berth orphans adopt`, `release` or `rm`.',
  machine_paused: 'End the cause that it names. Once it is STOPPED, leave the resume to the tenant’s start.',
  machine_fault: 'Do what it says: the instance stays ONLINE meanwhile.',
  resource_renamed: 'Give it its name back when you can: Berth follows it meanwhile, and its DELETE works.',
  resource_copied: 'Delete the copy, or take Berth’s mark off it. Berth never counts, adopts or removes it.',
  disk_left: 'Look at what it names. Berth removes disks only of what somebody asked to remove.',
  endpoint_shared:
    'Find on the platform which machine has the address, and correct the endpoint of the other.',
  disk_lost: 'Find out what removed it, and look whether other machines of its host have theirs.',
  start_failed: 'Find out why on the platform. It ends with a start that succeeds, or after a day.',
  step_failing: 'Mend what its last try says; the step goes on by itself.',
  call_stuck: 'Check the platform. If its driver hangs, restart the server that the alarm names.',
  clock_skew: 'Check NTP on this server and on the database’s. No work is done meanwhile.',
  certificate_ending: 'Renew it. The API and providers need no restart; the files of Incus do.',
  reload_refused: 'Mend the file that it names, then run `berth reload`. Do not restart the server before.',
  disk_low: 'Make room on its disk before it is full.',
  store_unwritable: 'Make room on its disk, or bring PostgreSQL back. Nothing needs a restart.',
};

export function remedyOf(kind: AlarmKind): string {
  return REMEDIES[kind];
}

/** The open alarms of every server on the database. */
export const alarmsPage: Page = async ({ store: { read } }, { now, session }) => {
  const alarms = await read.alarms.list();
  return {
    title: 'Alarms',
    body: html`<div class="head"><h1>Alarms</h1><span class="soft">${counted(alarms.length, 'alarm')}, the oldest first</span></div>
${live(
  'alarms',
  table(columnsAt(now, session.csrf), alarms, 'No alarm is open.'),
)}`,
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
      head: 'What is wrong',
      cell: ({ kind, text }) => html`${given(text)}<span class="why">${remedyOf(kind)}</span>`,
    },
    { head: 'Since', cell: ({ since }) => ago(since, now) },
    { head: 'Last seen', cell: ({ lastSeenAt }) => ago(lastSeenAt, now) },
    {
      head: 'Acknowledged by',
      cell: ({ kind, subject, acknowledgedBy }) =>
        acknowledgedBy === null
          ? html`<form method="post" action="/console/alarms/acknowledge">${csrfField(csrf)}
<input type="hidden" name="kind" value="${kind}"><input type="hidden" name="subject" value="${subject}">
<button>Acknowledge</button></form>`
          : named(acknowledgedBy),
    },
  ];
}

/** The subject, with a link to its page. */
export function subjectOf({ kind, subject, platform }: AlarmRecord): Html | '' {
  if (kind === 'step_failing' && subject.startsWith('inst-')) return instanceLink(subject);
  if (kind === 'orphan_machine' || kind === 'orphan_volume' || kind === 'row_lost')
    return html`<a href="/console/orphans" class="mono">${subject}</a>`;
  if (platform !== null) return html`<a href="/console/platforms">${named(subject)}</a>`;
  return named(subject);
}
