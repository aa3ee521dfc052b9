import { Command } from 'commander';
import { listWork, type WorkRow } from '../orchestrator/operate/views/work.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type ListFlags, printRecords, toReadLimit, withList } from './print-records.ts';

/** `berth work`: unfinished steps. */
export function workCommand(): Command {
  const command = new Command('work');
  withList(
    onDatabase(
      command.command('ls'),
      async ({ store: { read }, clock }, flags: ListFlags & { limit: number }) => {
        const { work } = await listWork(read, clock.now(), toReadLimit(flags));
        printRecords(work, columns, flags, 'No work is open.');
      },
    ),
    100,
  ).description('list unfinished steps, the longest waiting first');
  return command;
}

const columns = fieldColumns<WorkRow>(
  {
    RESOURCE: 'resource',
    STEP: 'step',
    PLATFORM: 'platform',
    ATTEMPT: 'attempt',
    'WAITS SINCE': 'waits_since',
    'NEXT TRY': 'next_try_at',
    DEADLINE: 'deadline_at',
    'RUNS NOW': 'runs_now',
    HELD: 'held',
    PHASE: 'phase',
    'PHASE SINCE': 'phase_since',
    'PHASE DUE': 'phase_due_at',
    'LAST PROBLEM': 'last_problem',
  },
  ['phase', 'phase_since', 'phase_due_at', 'last_problem'],
);
