import { Command } from 'commander';
import { instanceStatusSchema } from '../contract/instance.ts';
import { MAX_PAGE } from '../operators/views/values.ts';
import type { Reader } from '../orchestrator/model/store.ts';
import type { Dossier } from '../orchestrator/operate/views/dossier.ts';
import {
  type EventView,
  type InstanceRow,
  listInstances,
  readEvents,
  readInstance,
} from '../orchestrator/operate/views/instances.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { addInstanceActions } from './instance-actions.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type JsonFlag, printJson, printRecords, withJson } from './print-records.ts';

const STATUSES = instanceStatusSchema.options.join(', ');

/** `berth instances`: what there is, what is done about it, and what happened to it. */
export function instancesCommand(): Command {
  const instances = new Command('instances');
  withJson(
    onDatabase(instances.command('ls'), async ({ store: { read } }, flags: ListFlags) => {
      const found = await list(read, flags);
      if (flags.json) printJson(found);
      else printRecords(found, columns, flags);
    }),
  )
    .option('--account <name>', 'those of one account')
    .option('--region <token>', 'those of one region')
    .option('--offer <id>', 'those of one offer')
    .option(
      '--find <text>',
      'those with a text in the id, the name, the owner ref, the error or the endpoint',
    )
    .option('--status <status>', `those with one status: ${STATUSES}`)
    .description('list the instances that are not destroyed, the oldest first');
  withJson(
    onDatabase(instances.command('show <id>'), async ({ store: { read } }, id: string, flags: JsonFlag) => {
      const instance = await readInstance(read, id);
      if (instance === null) throw nothingKnown(id);
      if (flags.json) return printJson(instance);
      const { events, dossier, ...facts } = instance;
      printTable(
        ['FACT', 'VALUE'],
        Object.entries(facts).map(([name, value]) => [name, String(value ?? '-')]),
      );
      if (dossier !== null) tellDossier(dossier);
      printLine('');
      tellEvents(events);
    }),
  ).description(
    'show an instance: its row, the work that is open for it, its history, and of one that failed what there is to understand it',
  );
  withJson(
    onDatabase(instances.command('events <id>'), async ({ store: { read } }, id: string, flags: JsonFlag) => {
      const events = await readEvents(read, id);
      if (events.length === 0) throw nothingKnown(id);
      if (flags.json) return printJson(events);
      tellEvents(events);
    }),
  ).description(
    'what happened to an instance: each change of its status with its cause, the calls to the platform and the SSH proofs',
  );
  addInstanceActions(instances);
  return instances;
}

interface ListFlags extends JsonFlag {
  account?: string;
  region?: string;
  offer?: string;
  status?: string;
  find?: string;
}

/** @throws {Fatal} */
async function list(read: Reader, flags: ListFlags): Promise<InstanceRow[]> {
  const status = instanceStatusSchema.safeParse(flags.status);
  if (flags.status !== undefined && !status.success)
    throw new Fatal(`--status ${flags.status}: give one of ${STATUSES}.`);
  const owner = flags.account === undefined ? undefined : await read.credentials.accountByName(flags.account);
  if (owner === null) throw new Fatal(`There is no account ${flags.account}: see \`berth accounts list\`.`);
  const of = {
    accountId: owner?.id,
    region: flags.region,
    offerId: flags.offer,
    status: status.data,
    text: flags.find,
  };
  const found: InstanceRow[] = [];
  let after: string | null | undefined;
  while (after !== null) {
    const page = await listInstances(read, { ...of, after, limit: MAX_PAGE });
    found.push(...page.instances);
    after = page.next;
  }
  return found;
}

function nothingKnown(id: string): Fatal {
  return new Fatal(`There is no instance ${id}, and nothing is known of one: see \`berth instances ls\`.`);
}

const columns = fieldColumns<InstanceRow>(
  {
    ID: 'id',
    STATUS: 'status',
    OFFER: 'offer',
    REGION: 'region',
    PLATFORM: 'platform',
    HOST: 'host',
    ACCOUNT: 'account_id',
    CREATED: 'created_at',
    ERROR: 'error',
  },
  ['error'],
);

function tellEvents(events: readonly EventView[]): void {
  printTable(
    ['TIME', 'CAUSE', 'STATUS', 'TOOK', 'CALLS', 'NEXT', 'DETAIL'],
    events.map(({ at, cause, attempt, from, to, took_ms: tookMs, calls, next, detail }) => [
      at,
      attempt === null || attempt === 1 ? cause : `${cause} (${attempt})`,
      to === null ? '' : `${from ?? ''} → ${to}`.trim(),
      tookMs === null ? '' : `${tookMs} ms`,
      calls.map(tellCall).join(', '),
      next ?? '',
      detail ?? '',
    ]),
  );
  for (const { console } of events) if (console !== null) printLine(`\nThe end of its console:\n${console}`);
}

/** Why it failed, before the history and the console that it is read from. */
function tellDossier({ cause, cloud_init: cloudInit, ssh, calls }: Dossier): void {
  const lastSsh = ssh.at(-1);
  const lastCall = calls.at(-1);
  printLine('\nWhy it failed:');
  printTable(
    ['WHAT', 'FOUND'],
    [
      ['platform', cause ?? (lastCall && tellFound(lastCall)) ?? 'no call failed'],
      ['ssh', lastSsh === undefined ? 'it was not tried' : tellFound(lastSsh)],
      ['cloud-init', cloudInit === null ? 'unknown' : `${cloudInit.status}: ${cloudInit.line}`],
    ],
  );
}

function tellFound({ call, outcome, detail }: Dossier['calls'][number]): string {
  return `${call} ${outcome}${detail === null ? '' : `: ${detail}`}`;
}

function tellCall({ call, outcome, took_ms: tookMs, detail }: EventView['calls'][number]): string {
  return `${call} ${outcome} ${tookMs} ms${detail === undefined ? '' : ` (${detail})`}`;
}
