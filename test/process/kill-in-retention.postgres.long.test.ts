import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { marketplaceStores } from '../../src/compose/stores/marketplace.ts';
import { orchestratorStores } from '../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { toDatabase } from '../../src/config/server-schema.ts';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { toPostings } from '../../src/marketplace/ledger/segments.ts';
import { verifyLedger } from '../../src/marketplace/ledger/verify-ledger.ts';
import type { Posting } from '../../src/marketplace/model/ledger-records.ts';
import type { Store as MarketplaceStore, Transaction } from '../../src/marketplace/model/store.ts';
import { systemRandom as random } from '../../src/runtime/system.ts';
import { type PostgresServer, startPostgres } from '../support/databases/postgres.ts';
import { fileOf } from '../support/processes/built-programs.ts';
import { BerthProcess, type Ended, temporaryFolder } from '../support/processes/process.ts';
import { runningDeployment, seed, segment, teamId } from '../support/rows/marketplace-rows.ts';
import { account, instance, now } from '../support/rows/orchestrator-rows.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAYS = 3;
/** Many more transactions than all lives together have: fifty of their days are rolled up in one. */
const DEPLOYMENTS = 600;
const TOMBSTONES = 1_500;
const LIVES = 8;
const RATE = 2_400_000;
const NEVER = 0;
/** Transactions of a life whose killer comes late: no life has done all. */
const MOST = 5;

const entry = fileOf('retain');
const { BERTH_SEED = '1' } = process.env;
process.stdout.write(`BERTH_SEED=${BERTH_SEED}\n`);
const chance = createSeededRandom(BERTH_SEED);
const folder = temporaryFolder();
let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const databases = {
  SQLite: async (name: string) => toDatabase(join(folder.path, `${name}.db`)),
  PostgreSQL: () => postgres.createDatabase(),
};
const kinds = Object.keys(databases) as (keyof typeof databases)[];

/** A life until `dieAt` transactions, or until it is killed from outside so long after its first one. */
async function live(
  args: readonly [subject: string, database: string, now: number, dieAt: number],
  killedAfterMs?: number,
): Promise<Ended> {
  await using berth = new BerthProcess(args.map(String), { entry });
  if (killedAfterMs === undefined) return await berth.ended;
  await berth.waitForOutput((stdout) => (stdout.includes('begun') ? true : undefined));
  await new Promise((resolve) => setTimeout(resolve, killedAfterMs));
  return await berth.end('SIGKILL');
}

/** Some lives end before the commit of one of their first transactions, the others whenever they are killed. */
async function liveAndDie(subject: string, database: string, at: (life: number) => number): Promise<void> {
  for (let life = 0; life < LIVES; life++) {
    const dieAt = 1 + Math.floor(chance.next() * 4);
    const end =
      life % 2 === 0
        ? await live([subject, database, at(life), dieAt])
        : await live([subject, database, at(life), MOST], chance.next() * 60);
    expect(end, end.stderr).toMatchObject({ signal: 'SIGKILL', stderr: '' });
  }
}

async function runDeployment(tx: Transaction, number: number): Promise<void> {
  const [startedAt, endedAt] = [now, now + DAYS * DAY_MS];
  const id = `dep-${number}`;
  const rates = { rateMicroUsdPerHour: RATE + number, originalRateMicroUsdPerHour: RATE + number };
  const ran = { createdAt: startedAt, startedAt, observedAt: endedAt, providerName: id };
  await tx.deployments.insert(
    runningDeployment({ id, ...ran, rateMicroUsd: RATE + number, originalRateMicroUsd: RATE + number }),
  );
  let open = segment({ id: `seg-${number}`, subjectId: id, startedAt, postedUntil: startedAt, ...rates });
  await tx.ledger.insertSegment(open);
  const postings: Posting[] = [];
  for (let end = startedAt + HOUR_MS; end <= endedAt; end += HOUR_MS)
    for (const posting of toPostings({ random }, open, end)) {
      postings.push(posting);
      open = posting.segment;
    }
  await tx.ledger.post(postings);
  await tx.ledger.updateSegment({ ...open, endedAt });
  const record = await tx.deployments.byId(id);
  if (record !== null)
    await tx.deployments.update({ ...record, status: 'terminated', stoppedAt: endedAt, cleanup: 'done' });
}

/** What must not change, however the slices are kept. */
async function sumsOf({ read }: MarketplaceStore) {
  const costs: number[] = [];
  for (let number = 0; number < DEPLOYMENTS; number++)
    costs.push((await read.deployments.byId(`dep-${number}`))?.totalCostMicroUsd ?? Number.NaN);
  const team = await read.teams.byId(teamId);
  const days = await read.ledger.usageOf(teamId, now, now + DAYS * DAY_MS + 1);
  return { costs, balance: team?.balanceMicroUsd, accounts: await read.ledger.balances(), days };
}

it.each(kinds)(
  'a roll-up that is killed again and again changes no sum, on %s [killed-roll-up]',
  async (kind) => {
    const database = await databases[kind]('ledger');
    const longAfter = now + 100 * DAY_MS;
    const books = async <T>(read: (store: MarketplaceStore) => Promise<T>): Promise<T> => {
      const store = await openIn(marketplaceStores, database, {});
      return read(store).finally(() => store.close());
    };
    const before = await books(async (store) => {
      await seed(store, 1_000_000_000_000);
      for (let number = 0; number < DEPLOYMENTS; number++)
        await store.transact((tx) => runDeployment(tx, number));
      expect(await store.read.ledger.countRows()).toMatchObject({ uses: DEPLOYMENTS * DAYS * 24 });
      return sumsOf(store);
    });
    const expectSums = () =>
      books(async (store) => {
        expect(await sumsOf(store)).toEqual(before);
        expect((await verifyLedger(store, longAfter)).findings).toEqual([]);
        return (await store.read.ledger.countRows()).uses;
      });
    // The lease of the one that was killed is over when the next begins.
    const at = (life: number) => longAfter + life * DAY_MS;
    await liveAndDie('roll-up', database, at);
    const halfWay = await expectSums();
    expect(halfWay).toBeLessThan(DEPLOYMENTS * DAYS * 24);
    expect(await live(['roll-up', database, at(LIVES), NEVER])).toMatchObject({ code: 0, stderr: '' });
    expect(await expectSums()).toBe(DEPLOYMENTS * DAYS);
  },
  300_000,
);

it.each(kinds)(
  'a pruning that is killed again and again knows of each tombstone that it deleted, on %s [killed-pruning]',
  async (kind) => {
    const database = await databases[kind]('tombstones');
    const idOf = (number: number) => `inst-${String(number).padStart(32, '0')}`;
    const first = await openIn(orchestratorStores, database, {});
    await first.transact(async (tx) => {
      await tx.credentials.insertAccount(account);
      for (let number = 0; number < TOMBSTONES; number++)
        await tx.instances.insert(
          instance(idOf(number), {
            status: 'DESTROYED',
            createdAt: now + number,
            updatedAt: now + number,
            createOpenUntil: null,
          }),
        );
      await tx.instances.insert(instance(idOf(TOMBSTONES), { status: 'ONLINE', createOpenUntil: null }));
    });
    await first.close();
    const longAfter = now + 100 * DAY_MS;
    const expectMark = async (): Promise<number> => {
      const store = await openIn(orchestratorStores, database, {});
      const { instances, marks } = store.read;
      const left: number[] = [];
      for (let number = 0; number < TOMBSTONES; number++)
        if ((await instances.byId(idOf(number))) !== null) left.push(number);
      const pruned = TOMBSTONES - left.length;
      // The oldest go first, and the mark is that of the newest that went.
      expect(left.at(0) ?? TOMBSTONES).toBe(pruned);
      expect(await marks.get('instances_pruned_until')).toBe(pruned === 0 ? null : now + pruned - 1);
      expect(await instances.byId(idOf(TOMBSTONES))).toMatchObject({ status: 'ONLINE' });
      await store.close();
      return left.length;
    };
    for (let life = 0; life < LIVES; life++) {
      const dieAt = 1 + Math.floor(chance.next() * 5);
      const end = await live(['prune', database, longAfter, dieAt], life % 2 === 0 ? undefined : 0);
      expect(end, end.stderr).toMatchObject({ signal: 'SIGKILL', stderr: '' });
      await expectMark();
    }
    expect(await live(['prune', database, longAfter, NEVER])).toMatchObject({ code: 0, stderr: '' });
    expect(await expectMark()).toBe(0);
  },
  300_000,
);
