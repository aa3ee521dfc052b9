import { Command } from 'commander';
import { platformsOf } from '../config/platforms.ts';
import { counted } from '../contract/counted.ts';
import { readStatus, type StatusView } from '../orchestrator/operate/views/status.ts';
import { printLine } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, printPart, withOutput } from './print-records.ts';

/** `berth status`: instances, platforms, open work and alarms, on one screen. */
export function statusCommand(): Command {
  return withOutput(
    onDatabase(new Command('status'), async ({ store: { read }, clock, config }, flags: OutputFlag) => {
      const status = await readStatus(read, platformsOf(config).keys());
      if (isData(flags)) printData(flags, status);
      else printStatus(status, clock.now());
    }),
  );
}

function printStatus(status: StatusView, now: number): void {
  const { instances, platforms, work, alarms } = status;
  if (Object.keys(instances).length === 0) printLine('There is no instance.');
  else printPart(Object.entries(instances).map(([status, count]) => ({ instances: status, count })));
  printPart(
    platforms.map(({ platform, down_since: since }) => ({
      platform,
      healthy: since === null ? 'yes' : `no, since ${since}`,
    })),
  );
  printLine(`Taken: ${counted(status.units_taken, 'unit')}, ${status.storage_taken_gb} GB of storage.`);
  const { oldest_due_at: dueAt } = work;
  const word = dueAt !== null && Date.parse(dueAt) > now ? 'at' : 'since';
  const oldest = dueAt === null ? '' : `; the oldest is due ${word} ${dueAt}`;
  printLine(`Open steps of work: ${work.open}${oldest}. See berth work ls.`);
  printLine(`Open alarms: ${alarms.count}, not acknowledged: ${alarms.unacknowledged}. See berth alarms ls.`);
}
