import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { booksOf } from './ledger.fixture.ts';
import { expectSameLives } from './lives.fixture.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

it.each([
  [201, null],
  [202, 60_000],
])(
  'mails, ends and charges on PostgreSQL the same as a full check in every round: seed %i, slices of %s',
  async (seed, sliceMs) => {
    const { mails } = await expectSameLives({ seed, rounds: 240, teams: 4, sliceMs }, async () => {
      const store = await openMarketplacePostgresStore(await server.createDatabase('marketplace'));
      onTestFinished(() => store.close());
      return booksOf(store);
    });
    expect(mails).toBeGreaterThan(10);
  },
);
