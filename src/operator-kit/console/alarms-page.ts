import { counted } from '../../contract/counted.ts';
import type { AlarmKey, Severity } from '../alarms/model.ts';
import type { AlarmRow, alarmOperations, EndedAlarmRow } from '../alarms/operations.ts';
import { span } from '../views/values.ts';
import { actionForm } from './action-pages.ts';
import type { Page } from './deps.ts';
import { ago, badge, type Column, given, html, live, named, type Tone, table } from './parts.ts';

/** How many ended alarms the page shows. The timeline has the others. */
const ENDED_SHOWN = 50;

type LinkOf = (alarm: AlarmKey & { platform: string | null }) => unknown;
type Operations = ReturnType<typeof alarmOperations>;
type Deps = Parameters<Operations['alarmsView']['read']>[0];

/** The open alarms of every server on the database, and those that ended last. `linkOf` renders the subject. */
export function alarmsPageOf(
  { alarmsView, endedAlarmsView, acknowledgeAlarms }: Operations,
  linkOf: LinkOf,
): Page<Deps> {
  return async (deps, { now, session: { csrf } }) => {
    const [{ alarms }, ended] = await Promise.all([
      alarmsView.read(deps, {}),
      endedAlarmsView.read(deps, { limit: ENDED_SHOWN }),
    ]);
    const open: readonly Column<AlarmRow>[] = [
      ...firstColumns(linkOf),
      { head: 'Since', cell: ({ since }) => ago(since, now) },
      { head: 'Last seen', cell: ({ last_seen_at: at }) => ago(at, now) },
      {
        head: 'Acknowledged by',
        cell: ({ kind, subject, acknowledged_by: by, note }) =>
          by === null
            ? actionForm(
                acknowledgeAlarms,
                csrf,
                { kind, subject },
                {
                  content: html`<input name="note" maxlength="500" placeholder="Note" aria-label="Note">`,
                },
              )
            : html`${named(by)} <span class="soft">${given(note)}</span>`,
      },
    ];
    const over: readonly Column<EndedAlarmRow>[] = [
      ...firstColumns(linkOf),
      { head: 'Ended', cell: ({ until }) => ago(until, now) },
      { head: 'Lasted', cell: ({ since, until }) => span(Date.parse(until) - Date.parse(since)) },
      {
        head: 'Acknowledged by',
        cell: ({ acknowledged_by: by, note }) => html`${named(by)} <span class="soft">${given(note)}</span>`,
      },
    ];
    return {
      title: 'Alarms',
      body: html`<div class="head"><h1>Alarms</h1><span class="soft">${counted(alarms.length, 'open alarm')}, oldest first</span></div>
${live('alarms', table(open, alarms, 'No alarm is open.'))}
${live('ended', html`<h2>Ended</h2>${table(over, ended.alarms, 'No alarm has ended.')}`)}`,
    };
  };
}

const TONES: Readonly<Record<Severity, Tone>> = { critical: 'bad', warning: 'wait' };

function firstColumns<Row extends AlarmRow | EndedAlarmRow>(linkOf: LinkOf): Column<Row>[] {
  return [
    {
      head: 'Alarm',
      cell: ({ kind, severity, acknowledged_by: by }) =>
        html`${badge(kind, by === null ? TONES[severity] : 'none')} <span class="small">${severity}</span>`,
    },
    { head: 'About', cell: linkOf },
    {
      head: 'Problem',
      cell: ({ text, runbook }) => html`${given(text)} <span class="small soft">${runbook}</span>`,
    },
  ];
}
