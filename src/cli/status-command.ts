import { Command } from 'commander';
import { platformsOf } from '../config/platforms.ts';
import { counted } from '../contract/counted.ts';
import { readStatus, type StatusView } from '../orchestrator/operate/views/status.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type JsonFlag, printJson, withJson } from './print-records.ts';

/** `berth status`: what there is and what stands wrong, on one screen. */
export function statusCommand(): Command {
  return withJson(
    onDatabase(new Command('status'), async ({ store: { read }, config }, { json }: JsonFlag) => {
      const status = await readStatus(read, platformsOf(config).keys());
      if (json) printJson(status);
      else tell(status);
    }),
  );
}

function tell(status: StatusView): void {
  const { instances, platforms, work, alarms } = status;
  if (Object.keys(instances).length === 0) printLine('There is no instance.');
  else
    printTable(
      ['INSTANCES', 'COUNT'],
      Object.entries(instances).map(([name, count]) => [name, String(count)]),
    );
  printTable(
    ['PLATFORM', 'CAN BE TRUSTED'],
    platforms.map(({ platform, down_since: downSince }) => [
      platform,
      downSince === null ? 'yes' : `no, since ${downSince}`,
    ]),
  );
  printLine(`Taken: ${counted(status.units_taken, 'unit')}, ${status.storage_taken_gb} GB of storage.`);
  const oldest = work.oldest_due_at === null ? '' : `; the oldest is due since ${work.oldest_due_at}`;
  printLine(`Open steps of work: ${work.open}${oldest}. See berth work ls.`);
  printLine(
    `Alarms that stand: ${alarms.count}, not acknowledged: ${alarms.unacknowledged}. See berth alarms ls.`,
  );
}
