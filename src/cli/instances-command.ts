import { Command, Option } from 'commander';
import { counted } from '../contract/counted.ts';
import { type InstanceStatus, instanceStatusSchema } from '../contract/instance.ts';
import { MAX_PAGE } from '../operator-kit/views/values.ts';
import type { Reader } from '../orchestrator/model/store.ts';
import { findAccount } from '../orchestrator/operate/views/accounts.ts';
import type { Dossier } from '../orchestrator/operate/views/dossier.ts';
import {
  accountNames,
  describeBy,
  type EventView,
  findInstanceId,
  type InstanceDetail,
  type InstanceRow,
  listInstances,
  readEvents,
  readInstance,
} from '../orchestrator/operate/views/instances.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  cutName,
  fieldColumns,
  isData,
  type ListFlags,
  type OutputFlag,
  printCut,
  printData,
  printRecords,
  toReadLimit,
  withList,
  withNames,
  withOutput,
} from './print-records.ts';

const STATUSES = instanceStatusSchema.options.filter((status) => status !== 'DESTROYED');

/** `berth instances`: lists instances, acts on them, and shows their history. */
export function instancesCommand(): Command {
  const instances = new Command('instances');
  withList(
    onDatabase(instances.command('ls'), async ({ store: { read } }, flags: Filters) => {
      const found = await list(read, flags);
      if (isData(flags)) printData(flags, found.slice(0, flags.limit));
      else printRecords(found, columns, flags, 'There is no such instance.');
    }),
  )
    .option('--account <account>', 'those of one account, by its name or id')
    .option('--region <token>', 'those of one region')
    .option('--offer <id>', 'those of one offer')
    .option(
      '--find <text>',
      'those with this text in the id, name, owner ref, endpoint, error or failure cause',
    )
    .addOption(new Option('--status <status>', 'those with one status').choices(STATUSES))
    .description('list the instances that are not destroyed, the oldest first');
  withOutput(
    onDatabase(
      instances.command('show <instance>'),
      async ({ store: { read }, clock }, given: string, flags: OutputFlag) => {
        const id = await findInstanceId(read, given);
        const instance = await readInstance(read, id, clock.now());
        if (instance === null) throw nothingKnown(id);
        if (isData(flags)) return printData(flags, instance);
        const { events, dossier, diagnosis, ...facts } = instance;
        printTable(
          ['FACT', 'VALUE'],
          Object.entries(facts).map(([name, value]) => [name, String(value ?? '-')]),
        );
        printLine('');
        for (const line of linesOf(diagnosis)) printLine(line);
        if (dossier !== null) printDossier(dossier);
        printLine('');
        printEvents(events, await accountNames(read));
      },
    ),
  ).description(
    'show an instance: its row, its open work, a diagnosis, its history, and the details of a failure',
  );
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
  return withActions(instances);
}

interface Filters extends ListFlags {
  account?: string;
  region?: string;
  offer?: string;
  status?: InstanceStatus;
  find?: string;
}

/** Reads the matching rows, at most one more than `--limit`. @throws {Fatal} */
async function list(read: Reader, flags: Filters): Promise<InstanceRow[]> {
  const owner = flags.account === undefined ? undefined : await findAccount(read, flags.account);
  if (owner === null) throw new Fatal(`There is no account ${flags.account}: see \`berth accounts ls\`.`);
  const of = {
    accountId: owner?.id,
    region: flags.region,
    offerId: flags.offer,
    status: flags.status,
    text: flags.find,
  };
  const found: InstanceRow[] = [];
  let after: string | null | undefined;
  const limit = toReadLimit({ limit: flags.limit ?? Number.POSITIVE_INFINITY });
  while (after !== null && found.length < limit) {
    const page = await listInstances(read, { ...of, after, limit: Math.min(MAX_PAGE, limit - found.length) });
    found.push(...page.instances);
    after = page.next;
  }
  return found;
}

function nothingKnown(id: string): Fatal {
  return new Fatal(`There is no instance ${id}, and no history of it: see \`berth instances ls\`.`);
}

const columns = withNames(
  fieldColumns<InstanceRow>(
    {
      ID: 'id',
      NAME: 'name',
      STATUS: 'status',
      OFFER: 'offer',
      REGION: 'region',
      PLATFORM: 'platform',
      HOST: 'host',
      ACCOUNT: 'account',
      CREATED: 'created_at',
      ERROR: 'error',
    },
    ['error'],
  ),
  'name',
  'account',
);

function printEvents(events: readonly EventView[], nameOf: (accountId: string) => string): void {
  printTable(
    ['TIME', 'CAUSE', 'STATUS', 'TOOK', 'CALLS', 'NEXT', 'DETAIL', 'BY'],
    events.map(
      ({
        at,
        cause,
        by,
        attempt,
        tries_between: between,
        from,
        to,
        took_ms: tookMs,
        calls,
        next,
        detail,
      }) => [
        at,
        attempt === null || attempt === 1 ? cause : `${cause} (${attempt})`,
        to === null ? '' : `${from ?? ''} → ${to}`.trim(),
        tookMs === null ? '' : `${tookMs} ms`,
        calls.map(formatCall).join(', '),
        next ?? '',
        between === 0 ? (detail ?? '') : `${detail} (${counted(between, 'equal failure')} in between)`,
        by === null ? '' : describeBy(by, (id) => cutName(nameOf(id))),
      ],
    ),
  );
  for (const { console } of events) if (console !== null) printConsole(console);
}

/** Prints a guest's console, indented so that it cannot be mistaken for Berth's output. */
function printConsole(console: string): void {
  printLine('');
  printLine('The end of its console:');
  for (const line of console.split('\n')) printLine(`  ${line}`);
}

/** Words why an instance is in its state, and what to do. */
function linesOf({ headline, because, todo }: InstanceDetail['diagnosis']): string[] {
  return [`Diagnosis: ${headline}.`, ...because, ...todo.map((step) => `To do: ${step}`)];
}

/** Prints why an instance failed, before the history and the console, which show the details. */
function printDossier({ cause, cloud_init: cloudInit, ssh, calls }: Dossier): void {
  const lastSsh = ssh.at(-1);
  const lastCall = calls.at(-1);
  printLine('');
  printLine('Why it failed:');
  printTable(
    ['WHAT', 'FOUND'],
    [
      ['platform', cause ?? (lastCall && formatFound(lastCall)) ?? 'no call failed'],
      ['ssh', lastSsh === undefined ? 'it was not tried' : formatFound(lastSsh)],
      ['cloud-init', cloudInit === null ? 'unknown' : `${cloudInit.status}: ${cloudInit.line}`],
    ],
  );
}

function formatFound({ call, outcome, detail }: Dossier['calls'][number]): string {
  return `${call} ${outcome}${detail === null ? '' : `: ${detail}`}`;
}

function formatCall({ call, outcome, took_ms: tookMs, detail }: EventView['calls'][number]): string {
  return `${call} ${outcome} ${tookMs} ms${detail === undefined ? '' : ` (${detail})`}`;
}
