import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { orchestratorStores } from '../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { toDatabase } from '../../src/config/server-schema.ts';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { type PostgresServer, startPostgres } from '../support/databases/postgres.ts';
import { fileOf } from '../support/processes/built-programs.ts';
import { BerthProcess, type Ended, temporaryFolder } from '../support/processes/process.ts';
import { account, instance, now } from '../support/rows/orchestrator-rows.ts';

const DAY_MS = 86_400_000;
const TOMBSTONES = 1_500;
const LIVES = 8;
const NEVER = 0;

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
  args: readonly [database: string, now: number, dieAt: number],
  killedAfterMs?: number,
): Promise<Ended> {
  await using berth = new BerthProcess(args.map(String), { entry });
  if (killedAfterMs === undefined) return await berth.ended;
  await berth.waitForOutput((stdout) => (stdout.includes('begun') ? true : undefined));
  await new Promise((resolve) => setTimeout(resolve, killedAfterMs));
  return await berth.end('SIGKILL');
}

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
      const end = await live([database, longAfter, dieAt], life % 2 === 0 ? undefined : 0);
      expect(end, end.stderr).toMatchObject({ signal: 'SIGKILL', stderr: '' });
      await expectMark();
    }
    expect(await live([database, longAfter, NEVER])).toMatchObject({ code: 0, stderr: '' });
    expect(await expectMark()).toBe(0);
  },
  300_000,
);
