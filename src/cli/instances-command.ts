import { Command } from 'commander';
import { instanceStatusSchema } from '../contract/instance.ts';
import type { HistoryEvent, PlatformCall } from '../orchestrator/model/history.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { Reader } from '../orchestrator/model/store.ts';
import type { Work } from '../orchestrator/model/work.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  type Column,
  type JsonFlag,
  printJson,
  printRecords,
  toFields,
  toJsonTime,
  withJson,
} from './print-records.ts';

const STATUSES = instanceStatusSchema.options.join(', ');

/** `berth instances`: what there is, what is done about it, and what happened to it. */
export function instancesCommand(): Command {
  const instances = new Command('instances');
  withJson(
    onDatabase(instances.command('ls'), async ({ store: { read } }, flags: ListFlags) => {
      printRecords(await list(read, flags), columns, flags);
    }),
  )
    .option('--account <name>', 'those of one account')
    .option('--region <token>', 'those of one region')
    .option('--offer <id>', 'those of one offer')
    .option('--status <status>', `those with one status: ${STATUSES}`)
    .description('list the instances that are not destroyed, the oldest first');
  withJson(
    onDatabase(instances.command('show <id>'), async ({ store: { read } }, id: string, flags: JsonFlag) => {
      const record = await find(read, id);
      const work = await read.work.of(id);
      const events = await eventsOf(read, record);
      if (flags.json) return printJson(toJson(record, work, events));
      printTable(
        ['FACT', 'VALUE'],
        Object.entries(facts(record, work)).map(([name, value]) => [name, String(value ?? '-')]),
      );
      printLine('');
      tellEvents(events);
    }),
  ).description('show an instance: its row, the work that is open for it, and its history');
  withJson(
    onDatabase(instances.command('events <id>'), async ({ store: { read } }, id: string, flags: JsonFlag) => {
      const row = await read.instances.byId(id);
      const events = row === null ? await read.history.of(id) : await eventsOf(read, row);
      if (events.length === 0) throw nothingKnown(id);
      if (flags.json) return printJson(events.map(eventToJson));
      tellEvents(events);
    }),
  ).description(
    'what happened to an instance: each change of its status with its cause, the calls to the platform and the SSH proofs',
  );
  return instances;
}

interface ListFlags extends JsonFlag {
  account?: string;
  region?: string;
  offer?: string;
  status?: string;
}

/** @throws {Fatal} */
async function list(read: Reader, { account, region, offer, status }: ListFlags): Promise<InstanceRecord[]> {
  if (status !== undefined && !instanceStatusSchema.safeParse(status).success)
    throw new Fatal(`--status ${status}: give one of ${STATUSES}.`);
  const owner = account === undefined ? undefined : await read.credentials.accountByName(account);
  if (owner === null) throw new Fatal(`There is no account ${account}: see \`berth accounts list\`.`);
  const found = await read.instances.list({
    ...(owner && { accountId: owner.id }),
    ...(region !== undefined && { region }),
  });
  return found.filter(
    (record) => (offer ?? record.offerId) === record.offerId && (status ?? record.status) === record.status,
  );
}

/** @throws {Fatal} */
async function find(read: Reader, id: string): Promise<InstanceRecord> {
  const record = await read.instances.byId(id);
  if (record === null) throw nothingKnown(id);
  return record;
}

function nothingKnown(id: string): Fatal {
  return new Fatal(`There is no instance ${id}, and nothing is known of one: see \`berth instances ls\`.`);
}

const columns: readonly Column<InstanceRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'STATUS', key: 'status', value: ({ status }) => status },
  { head: 'OFFER', key: 'offer', value: ({ offerId }) => offerId },
  { head: 'REGION', key: 'region', value: ({ region }) => region },
  { head: 'PLATFORM', key: 'platform', value: ({ platform }) => platform },
  { head: 'HOST', key: 'host', value: ({ host }) => host },
  { head: 'ACCOUNT', key: 'account_id', value: ({ accountId }) => accountId },
  { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
  { head: 'ERROR', key: 'error', value: ({ error }) => error, none: '' },
];

function facts(record: InstanceRecord, work: Work | null) {
  const { endpoint } = record;
  return {
    ...toFields(record, columns),
    name: record.name,
    updated_at: toJsonTime(record.updatedAt),
    owner_ref: record.ownerRef,
    request_id: record.spec.requestId ?? null,
    endpoint: endpoint && `${endpoint.sshUsername}@${endpoint.publicIp}:${endpoint.sshPort}`,
    host_key: record.hostKeyFingerprint,
    work: work?.kind ?? null,
    attempt: work?.attempt ?? null,
    next_try_at: work && toJsonTime(work.notBefore),
    deadline_at: work && toJsonTime(work.deadlineAt),
    last_problem: work?.lastError ?? null,
    held: work?.isHeld ?? null,
  };
}

function toJson(record: InstanceRecord, work: Work | null, events: readonly HistoryEvent[]) {
  return { ...facts(record, work), events: events.map(eventToJson) };
}

function eventToJson({
  at,
  cause,
  attempt,
  fromStatus,
  toStatus,
  next,
  detail,
  calls,
  console,
  tookMs,
}: HistoryEvent) {
  return {
    at: toJsonTime(at),
    cause,
    attempt,
    from: fromStatus,
    to: toStatus,
    next,
    detail,
    calls: calls.map(({ tookMs: took_ms, ...call }) => ({ ...call, took_ms })),
    console,
    took_ms: tookMs,
  };
}

/** The history, which begins with the create: that one is not stored, since the row has it. */
async function eventsOf({ history }: Reader, { id, createdAt }: InstanceRecord): Promise<HistoryEvent[]> {
  const created: HistoryEvent = {
    instanceId: id,
    at: createdAt,
    cause: 'request',
    attempt: null,
    fromStatus: null,
    toStatus: 'PROVISIONING',
    next: null,
    detail: null,
    calls: [],
    console: null,
    tookMs: null,
  };
  return [created, ...(await history.of(id))];
}

function tellEvents(events: readonly HistoryEvent[]): void {
  printTable(
    ['TIME', 'CAUSE', 'STATUS', 'TOOK', 'CALLS', 'NEXT', 'DETAIL'],
    events.map(({ at, cause, attempt, fromStatus, toStatus, tookMs, calls, next, detail }) => [
      toJsonTime(at) ?? '',
      attempt === null || attempt === 1 ? cause : `${cause} (${attempt})`,
      toStatus === null ? '' : `${fromStatus ?? ''} → ${toStatus}`.trim(),
      tookMs === null ? '' : `${tookMs} ms`,
      calls.map(tellCall).join(', '),
      next ?? '',
      detail ?? '',
    ]),
  );
  for (const { console } of events) if (console !== null) printLine(`\nThe end of its console:\n${console}`);
}

function tellCall({ call, outcome, tookMs, detail }: PlatformCall): string {
  return `${call} ${outcome} ${tookMs} ms${detail === undefined ? '' : ` (${detail})`}`;
}
