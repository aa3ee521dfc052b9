import { Argument, Command } from 'commander';
import { type AlarmKind, alarmKinds } from '../orchestrator/model/alarm.ts';
import { acknowledgeAlarms } from '../orchestrator/operate/acknowledge.ts';
import { type AlarmRow, listAlarms } from '../orchestrator/operate/views/alarms.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  fieldColumns,
  type ListFlags,
  type OutputFlag,
  printDone,
  printRecords,
  withList,
  withOutput,
} from './print-records.ts';

/** `berth alarms`: the open alarms of all servers that use the database. */
export function alarmsCommand(): Command {
  const alarms = new Command('alarms');
  withList(
    onDatabase(alarms.command('ls'), async ({ store }, flags: ListFlags) => {
      printRecords(await listAlarms(store.read), alarmColumns, flags, 'No alarm is open.');
    }),
  ).description('list the open alarms, the oldest first');
  const ack = onDatabase(
    alarms
      .command('ack')
      .addArgument(new Argument('<kind>', 'of alarm').choices(alarmKinds))
      .argument('[subject]'),
    async (deps, kind: AlarmKind, subject: string | undefined, flags: OutputFlag & { by?: string }) => {
      const actor = localActor(flags.by);
      const of = { kind, ...(subject !== undefined && { subject }) };
      const acknowledged = await acknowledgeAlarms(deps, actor, of);
      const sentence = `${acknowledged.length} acknowledged by ${actor.name}. An alarm ends when its cause does.`;
      printDone(flags, { acknowledged: acknowledged.length, by: actor.name }, sentence);
    },
  );
  withOutput(ack)
    .option('--by <name>', 'who has taken it on; default: the user of this machine')
    .description('record that you work on an alarm; without a subject, on all of that kind');
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
