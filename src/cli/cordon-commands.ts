import { Command } from 'commander';
import { type CordonRow, listCordons } from '../orchestrator/operate/actions/cordons.ts';
import { withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type Column, fieldColumns, type ListFlags, printRecords, withList } from './print-records.ts';

/** `berth cordons`: current cordons and planned maintenance. */
export function cordonsCommand(): Command {
  const cordons = new Command('cordons');
  withList(
    onDatabase(cordons.command('ls', { isDefault: true }), async ({ store, clock }, flags: ListFlags) => {
      const all = await listCordons(store.read, clock.now());
      printRecords(all, columns, flags, 'Nothing is cordoned.');
    }),
  ).description('list cordons and planned maintenance');
  return cordons;
}

/** `berth maintenance`: windows that the catalog announces to clients. */
export function maintenanceCommand(): Command {
  const maintenance = withActions(new Command('maintenance'));
  withList(
    onDatabase(maintenance.command('ls'), async ({ store, clock }, flags: ListFlags) => {
      const windows = (await listCordons(store.read, clock.now())).filter(({ maintenance }) => maintenance);
      printRecords(windows, columns, flags, 'No maintenance is planned.');
    }),
  ).description('list planned and current maintenance');
  return maintenance;
}

const columns: readonly Column<CordonRow>[] = fieldColumns<CordonRow>(
  {
    KIND: 'kind',
    NAME: 'name',
    PLATFORM: 'platform',
    SINCE: 'since',
    UNTIL: 'until',
    ACTIVE: 'active',
    MAINTENANCE: 'maintenance',
    BY: 'by',
    REASON: 'reason',
    ID: 'id',
  },
  ['reason'],
);
