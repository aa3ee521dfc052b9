import { type Column, getTableColumns } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  account,
  accountId,
  anOrder,
  instance,
  now,
  volume,
} from '../../test/support/rows/orchestrator-rows.ts';
import type { Reader, Transaction } from '../orchestrator/model/store.ts';
import type { Lease } from '../orchestrator/model/work.ts';
import type { Connection } from './queries/connection.ts';
import { Changes, readerOn, transactionOn } from './queries/repositories.ts';
import { claimWork, nextWorkAt } from './queries/work.ts';

/** A statement as it was sent. */
export interface Sent {
  text: string;
  values: readonly unknown[];
}

export interface PlannedDatabase {
  /** A new connection without prepared statements, so that each statement is sent. */
  connect(): Connection;
  /** The type of binary columns. */
  bytes: 'blob' | 'bytea';
  run(text: string): Promise<void>;
  /** The statements since the previous call. */
  takeSent(): Sent[];
  /** The database's plan of the statement, one line for each part. */
  explain(sent: Sent): Promise<string[]>;
  /** Whether a line of a plan reads a whole table, or a whole index that grows with the table. */
  isScan(line: string): boolean;
  close(): Promise<void>;
}

/** Enough rows for the planner to prefer an index. */
const ROWS = 20_000;
const LIVE = 400;

type Ask = (on: { connection: Connection; reader: Reader; tx: Transaction }) => Promise<unknown>;

const lease = { resourceId: 'work-7', token: 'none', kind: 'create', attempt: 1 } as unknown as Lease;
const claim = {
  platform: 'default',
  owner: 'me',
  now,
  leaseUntil: now + 1,
  limit: 64,
  resourceKind: 'instance',
} as const;
const place = { id: 'instance-7', createdAt: now };
const live = { ...place, accountId } as never;
const digest = Buffer.alloc(32);

const asked: [string, Ask][] = [
  ['an instance by its id', ({ reader }) => reader.instances.byId('instance-7')],
  ['an instance by its ref', ({ reader }) => reader.instances.byOwnerRef('instance-7')],
  ['instances by their ids', ({ reader }) => reader.instances.byIds(['instance-7', 'instance-8'])],
  ['the first page of a list', ({ reader }) => reader.instances.page({ accountId, limit: 500 })],
  ['the next page of a list', ({ reader }) => reader.instances.page({ accountId, limit: 500, after: place })],
  ['a page of a region', ({ reader }) => reader.instances.page({ accountId, region: 'here', limit: 500 })],
  ['the first page of the live instances', ({ reader }) => reader.instances.livePage({ limit: 100 })],
  [
    'the next page of the live instances',
    ({ reader }) => reader.instances.livePage({ limit: 100, after: live }),
  ],
  [
    'a page of an operator',
    ({ reader }) => reader.instances.search({ order: 'newest', after: place, limit: 50 }),
  ],
  ['how many instances each host has', ({ reader }) => reader.instances.countByHost()],
  ['how many instances each account has', ({ reader }) => reader.instances.countByAccount()],
  ['how many instances each status has', ({ reader }) => reader.instances.countByStatus()],
  ['a write of an instance', ({ tx }) => tx.instances.update(instance('instance-7'))],
  ['a volume by its id', ({ reader }) => reader.volumes.byId('volume-7')],
  ['a volume by its ref', ({ reader }) => reader.volumes.byOwnerRef('volume-7')],
  ['the attachments of a volume', ({ reader }) => reader.volumes.attachmentsOfVolume('volume-7')],
  ['the attachments of an instance', ({ reader }) => reader.volumes.attachmentsOfInstance('instance-7')],
  ['whether an instance has a claim', ({ reader }) => reader.claims.isHeldBy('instance-7')],
  ['the units of a placement', ({ tx }) => tx.claims.take({ ...placement, instanceId: 'none', capacity: 1 })],
  ['the end of a claim', ({ tx }) => tx.claims.release('none')],
  ['the storage of a location', ({ tx }) => tx.storageClaims.take({ ...storage, volumeId: 'volume-7' })],
  ['the work of a resource', ({ reader }) => reader.work.of('work-7')],
  ['the work that is due', ({ connection }) => claimWork(connection, claim)],
  ['when work is due next', ({ connection }) => nextWorkAt(connection, 'default')],
  ['work that is put', ({ tx }) => tx.work.put({ ...work, resourceId: 'work-7' })],
  ['work that is made due', ({ tx }) => tx.work.makeDue('work-7', now)],
  ['whether a lease holds', ({ tx }) => tx.work.check(lease)],
  ['the end of a lease', ({ tx }) => tx.work.release(lease)],
  ['a step that follows', ({ tx }) => tx.work.replace(lease, { ...work, kind: 'verify' })],
  ['the end of a step', ({ tx }) => tx.work.finish(lease)],
  ['what an account has', ({ tx }) => tx.accountUse.instances(accountId)],
  ['the volumes of an account', ({ tx }) => tx.accountUse.volumes(accountId)],
  ['an idempotency key', ({ tx }) => tx.idempotency.find(accountId, 'key-7')],
  ['old idempotency keys', ({ tx }) => tx.idempotency.deleteCreatedBefore(now - 1e9)],
  ['a token', ({ reader }) => reader.credentials.tokenByDigest(digest)],
  ['tokens that have expired', ({ tx }) => tx.credentials.deleteTokensExpiredBefore(now - 1e9)],
  ['the losses since a moment', ({ reader }) => reader.losses.countSince(now, { platform: 'default' })],
  ['whether an instance was lost', ({ reader }) => reader.losses.includes('instance-7')],
];

const placement = { offerId: 'offer', region: 'here' };
const storage = { region: 'nowhere', gb: 1, capacityGb: 0 };
const work = { resourceKind: 'instance', kind: 'create', notBefore: now, deadlineAt: null } as const;

/** Tests that the orchestrator's frequent statements cost no more after a year of rows. */
export function describePlans(name: string, open: () => Promise<PlannedDatabase>): void {
  describe(`the statements that ${name} runs all the time`, () => {
    let database: PlannedDatabase;
    beforeAll(async () => {
      database = await open();
      await fill(database);
    });
    afterAll(() => database.close());

    it.each(asked)('%s: no table is read as a whole', async (_what, ask) => {
      const connection = database.connect();
      const reader = readerOn(connection, (error) => error);
      const tx = transactionOn(connection, new Changes());
      database.takeSent();
      await ask({ connection, reader, tx });
      const sent = database.takeSent();
      const scans: string[] = [];
      for (const statement of sent)
        for (const line of await database.explain(statement))
          if (database.isScan(line)) scans.push(`${line} in ${statement.text}`);
      expect([sent.length > 0, scans]).toEqual([true, []]);
    });

    it('a statement that reads a whole table is detected', async () => {
      const lines = await database.explain({
        text: 'SELECT count(*) FROM instances WHERE error = id',
        values: [],
      });
      expect(lines.filter((line) => database.isScan(line))).not.toEqual([]);
    });
  });
}

/** Copies one row of each table many times. As after a year, most instances and volumes are gone. */
async function fill({ connect, bytes, run }: PlannedDatabase): Promise<void> {
  const connection = connect();
  const tx = transactionOn(connection, new Changes());
  const token = { digest, accountId, parentDigest: digest, createdAt: now, expiresAt: now };
  await tx.credentials.insertAccount(account);
  await tx.instances.insert(instance('instance-0', { ownerRef: 'instance-0' }));
  await tx.volumes.insert(volume('volume-0', { ownerRef: 'volume-0', status: 'AVAILABLE' }));
  await tx.claims.take({ ...placement, instanceId: 'instance-0', capacity: 1 });
  await tx.storageClaims.take({ volumeId: 'volume-0', region: 'here', gb: 1, capacityGb: null });
  await tx.volumes.putAttachment({ volumeId: 'volume-0', instanceId: 'instance-0', state: 'attached' });
  await tx.work.put({ ...work, resourceId: 'work-0' });
  await tx.losses.add({ instanceId: 'instance-0', at: now });
  await tx.attempts.put({
    ...{ resourceId: 'instance-0', resourceKind: 'instance', platform: 'default', ref: 'attempt-0' },
    ...{ host: null, openedAt: now, closedAt: now, destroyOrder: anOrder },
  });
  await tx.credentials.insertToken(token);
  const key = { accountId, key: 'key-0', requestDigest: digest, resourceId: 'instance-0', createdAt: now };
  await tx.idempotency.insert(key);

  const isGone = `number > ${LIVE}`;
  await run(
    copyOf('instances', connection.instances, {
      id: "'instance-' || number",
      owner_ref: "'instance-' || number",
      status: `CASE WHEN ${isGone} THEN 'DESTROYED' ELSE 'ONLINE' END`,
      created_at: 'created_at + number',
    }),
  );
  await run(
    copyOf('volumes', connection.volumes, {
      id: "'volume-' || number",
      owner_ref: "'volume-' || number",
      deleted_at: `CASE WHEN ${isGone} THEN created_at + number ELSE NULL END`,
    }),
  );
  const ofInstance = { instance_id: "'instance-' || number" };
  const ofVolume = { volume_id: "'volume-' || number" };
  await run(copyOf('claims', connection.claims, { ...ofInstance, offer_id: "'offer-' || (number % 50)" }));
  await run(
    copyOf('storage_claims', connection.storageClaims, { ...ofVolume, region: "'region-' || (number % 50)" }),
  );
  await run(copyOf('attachments', connection.attachments, { ...ofInstance, ...ofVolume }));
  await run(copyOf('attempts', connection.attempts, { ref: "'attempt-' || number" }));
  await run(copyOf('losses', connection.losses, { ...ofInstance, at: 'at - number * 1000' }));
  await run(
    copyOf('work', connection.work, { resource_id: "'work-' || number", not_before: 'not_before + number' }),
  );
  await run(copyOf('idempotency', connection.idempotency, { key: "'key-' || number" }));
  await run(copyOf('tokens', connection.tokens, { digest: `CAST('token-' || number AS ${bytes})` }));
  await run('ANALYZE');
}

/** Copies the only row of a table with other values in some columns. `number` is the index of the copy. */
function copyOf(
  table: string,
  definition: Parameters<typeof getTableColumns>[0],
  changed: Record<string, string>,
) {
  const names = Object.values<Column>(getTableColumns(definition)).map(({ name }) => name);
  const values = names.map((name) => changed[name] ?? name);
  return `INSERT INTO ${table} (${names.join(', ')})
    WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${ROWS})
    SELECT ${values.join(', ')} FROM numbers, ${table}`;
}
