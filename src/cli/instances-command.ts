import { Command } from 'commander';
import { counted } from '../contract/counted.ts';
import {
  accountNames,
  describeBy,
  type EventView,
  findInstanceId,
  readEvents,
  readInstance,
} from '../orchestrator/operate/views/instances.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine } from '../runtime/print.ts';
import { withActions } from './action-commands.ts';
import { addMachineCommands } from './machines/commands.ts';
import { tenantCommands } from './machines/tenant-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  cutName,
  isData,
  type ListFlags,
  type OutputFlag,
  printCut,
  printData,
  printPart,
  withList,
  withOutput,
} from './print-records.ts';

/** `berth instances`: lists instances, acts on them, and shows their history. */
export function instancesCommand(): Command {
  const instances = new Command('instances');
  withOutput(
    onDatabase(
      instances.command('show <instance>'),
      async ({ store: { read }, clock }, given: string, flags: OutputFlag) => {
        const id = await findInstanceId(read, given);
        const instance = await readInstance(read, id, clock.now());
        if (instance === null) throw nothingKnown(id);
        if (isData(flags)) return printData(flags, instance);
        const { events, diagnosis, ...facts } = instance;
        printPart(facts);
        printLine('');
        printLine(`Diagnosis: ${diagnosis.headline}.`);
        for (const because of diagnosis.because) printLine(because);
        for (const step of diagnosis.todo) printLine(`To do: ${step}`);
        printLine('');
        printEvents(events, await accountNames(read));
      },
      tenantCommands['show'],
    ),
  ).description('show an instance: its row, its open work, a diagnosis, and its history');
  withList(
    onDatabase(
      instances.command('events <instance>'),
      async ({ store: { read } }, id: string, flags: ListFlags) => {
        const events = await readEvents(read, await findInstanceId(read, id));
        if (events.length === 0) throw nothingKnown(id);
        const { limit = events.length } = flags;
        const latest = events.slice(-limit);
        if (isData(flags)) return printData(flags, latest);
        printEvents(latest, await accountNames(read));
        printCut(events.length, flags);
      },
    ),
  ).description(
    'show the history of an instance: changes of status with their causes, calls to the platform, SSH proofs; --limit shows the last ones',
  );
  addMachineCommands(instances);
  return withActions(instances, tenantCommands);
}

function nothingKnown(id: string): Fatal {
  return new Fatal(`There is no instance ${id}, and no history of it: see \`berth instances ls\`.`);
}

function printEvents(events: readonly EventView[], nameOf: (accountId: string) => string): void {
  printPart(
    events.map(({ at, cause, by, attempt, tries_between: between, from, to, took_ms: tookMs, ...event }) => ({
      time: at,
      cause: attempt === null || attempt === 1 ? cause : `${cause} (${attempt})`,
      status: to === null ? '' : `${from ?? ''} → ${to}`.trim(),
      took: tookMs === null ? '' : `${tookMs} ms`,
      calls: event.calls.map(formatCall),
      next: event.next ?? '',
      detail:
        between === 0
          ? (event.detail ?? '')
          : `${event.detail} (${counted(between, 'equal failure')} in between)`,
      by: by === null ? '' : describeBy(by, (id) => cutName(nameOf(id))),
    })),
  );
  for (const { console } of events) if (console !== null) printConsole(console);
}

/** Prints a guest's console, indented so that it cannot be mistaken for Berth's output. */
function printConsole(console: string): void {
  printLine('');
  printLine('The end of its console:');
  for (const line of console.split('\n')) printLine(`  ${line}`);
}

function formatCall({ call, outcome, took_ms: tookMs, detail }: EventView['calls'][number]): string {
  return `${call} ${outcome} ${tookMs} ms${detail === undefined ? '' : ` (${detail})`}`;
}
