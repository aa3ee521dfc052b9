import { Command } from 'commander';
import { type AlarmKind, alarmKinds } from '../orchestrator/model/alarm.ts';
import { acknowledgeAlarms } from '../orchestrator/operate/acknowledge.ts';
import { type AlarmRow, listAlarms } from '../orchestrator/operate/views/alarms.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type JsonFlag, printRecords, withJson } from './print-records.ts';

/** `berth alarms`: what stands wrong, as every server that uses the database sees it. */
export function alarmsCommand(): Command {
  const alarms = new Command('alarms');
  withJson(
    onDatabase(alarms.command('ls'), async ({ store }, flags: JsonFlag) => {
      printRecords(await listAlarms(store.read), alarmColumns, flags, 'No alarm stands.');
    }),
  ).description('list the alarms that stand, the oldest first');
  onDatabase(
    alarms.command('ack <kind> [subject]'),
    async (deps, kind: string, subject: string | undefined, { by }: { by?: string }) => {
      const actor = localActor(by);
      const of = { kind: toKind(kind), ...(subject !== undefined && { subject }) };
      const acknowledged = await acknowledgeAlarms(deps, actor, of);
      printLine(`${acknowledged.length} acknowledged by ${actor.name}. An alarm ends when its cause does.`);
    },
  )
    .option('--by <name>', 'who has taken it on; default: the user of this machine')
    .description('say that somebody is at it; without a subject, at all of that kind');
  return alarms;
}

const alarmColumns = fieldColumns<AlarmRow>({
  KIND: 'kind',
  SUBJECT: 'subject',
  PLATFORM: 'platform',
  SINCE: 'since',
  'LAST SEEN': 'last_seen_at',
  'ACKNOWLEDGED BY': 'acknowledged_by',
  TEXT: 'text',
});

/** @throws {Fatal} */
function toKind(text: string): AlarmKind {
  const kind = alarmKinds.find((name) => name === text);
  if (kind === undefined)
    throw new Fatal(`There is no kind of alarm ${text}: give one of ${alarmKinds.join(', ')}.`);
  return kind;
}
