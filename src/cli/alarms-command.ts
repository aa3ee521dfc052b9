import { Command } from 'commander';
import { type AlarmRow, listAlarms } from '../orchestrator/operate/views/alarms.ts';
import { withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type ListFlags, printRecords, withList } from './print-records.ts';

/** `berth alarms`: the open alarms of all servers that use the database. */
export function alarmsCommand(): Command {
  const alarms = new Command('alarms');
  withList(
    onDatabase(alarms.command('ls'), async ({ store }, flags: ListFlags) => {
      printRecords(await listAlarms(store.read), alarmColumns, flags, 'No alarm is open.');
    }),
  ).description('list the open alarms, the oldest first');
  return withActions(alarms);
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
