import { expect, it } from 'vitest';
import { now, team } from '../../../test/support/rows/marketplace-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { type Store, StoreUnavailable, type Transaction } from '../model/store.ts';
import { balanceOf, DOLLAR, HOUR_MS, MINUTE_MS, neverCalled, pass } from './billing-job.fixture.ts';
import { BillingJob } from './billing-job.ts';
import { openBooks } from './ledger.fixture.ts';
import { verifyLedger } from './verify-ledger.ts';

it('bills the other segments where one cannot be billed', async () => {
  const books = await openBooks(10 * DOLLAR);
  await books.run();
  await books.keep();
  await books.clock.advance(HOUR_MS);
  await books.observe('dep-1');
  const refusing = (tx: Transaction): Transaction => ({
    ...tx,
    ledger: {
      ...tx.ledger,
      post: async (postings) => {
        if (postings.some(({ segment }) => segment.subjectId === 'dep-1')) throw new Error('unwritable');
        await tx.ledger.post(postings);
      },
    },
  });
  const store: Store = {
    ...books.store,
    transact: (body) => books.store.transact((tx) => body(refusing(tx))),
  };
  await new BillingJob({ ...books.deps, store, enforce: neverCalled }).run();
  expect(await balanceOf(books)).toBe(10 * DOLLAR - 10_000);
  expect(books.lines).toContainEqual(expect.objectContaining({ level: 'error' }));
});

it('checks and posts the other teams where the store fails for one, and ends the round where it fails for all [store-fails-for-one-team]', async () => {
  const books = await openBooks(10 * DOLLAR);
  await books.store.transact((tx) => tx.teams.insert(team({ id: 'team-0' })));
  await books.keep({ id: 'vol-0', volumeId: 'v-0', name: 'vol-0', providerName: 'vol-0', teamId: 'team-0' });
  await books.keep();
  await new BillingJob({ ...books.deps, enforce: neverCalled }).run();
  await books.clock.advance(HOUR_MS);
  const failing = new Set(['team-0']);
  const failed: string[] = [];
  const fail = (id: string) => {
    if (!failing.has(id)) return;
    failed.push(id);
    throw new StoreUnavailable('22003: out of range');
  };
  const refusing = (tx: Transaction): Transaction => ({
    ...tx,
    teams: {
      ...tx.teams,
      byId: async (id) => {
        fail(id);
        return tx.teams.byId(id);
      },
    },
    ledger: {
      ...tx.ledger,
      post: async (postings) => {
        for (const { segment } of postings) fail(segment.teamId);
        await tx.ledger.post(postings);
      },
    },
  });
  const store: Store = {
    ...books.store,
    transact: (body) => books.store.transact((tx) => body(refusing(tx))),
  };
  const dueTeams = async () =>
    (await books.store.read.teams.due({ now: books.clock.now(), limit: 99 })).length;
  const billing = new BillingJob({ ...books.deps, store, enforce: neverCalled });
  await billing.run();
  expect(await dueTeams()).toBe(1);
  expect(await balanceOf(books)).toBe(10 * DOLLAR - 10_000);
  const errors = books.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields);
  expect(errors).toMatchObject([{ team: 'team-0' }, { volume: 'vol-0', team: 'team-0' }]);

  for (let index = 1; index < 9; index++) {
    const id = `vol-${index}0`;
    failing.add(`team-${index}`);
    if (index > 1) await books.store.transact((tx) => tx.teams.insert(team({ id: `team-${index}` })));
    const named = { volumeId: id, name: id, providerName: id };
    await books.keep({ id, ...named, teamId: `team-${index}` });
  }
  failed.length = 0;
  await billing.run();
  expect(failed).toEqual(['team-1', 'team-2', 'team-3']);
  expect(await dueTeams()).toBe(9);
});

it('bills a month in which no server ran, of more volumes than one statement takes [month-without-servers]', async () => {
  const books = await openBooks(10_000 * DOLLAR);
  const ids = Array.from({ length: 201 }, (_, index) => `vol-${index}`);
  for (const id of ids) await books.keep({ id, volumeId: `v-${id}`, name: id, providerName: id });
  await books.clock.advance(30 * DAY_MS);
  const locked: number[] = [];
  const counting = (tx: Transaction): Transaction => ({
    ...tx,
    ledger: {
      ...tx.ledger,
      lockBilled: async (segments) => {
        locked.push(segments.length);
        return tx.ledger.lockBilled(segments);
      },
    },
  });
  const store: Store = {
    ...books.store,
    transact: (body) => books.store.transact((tx) => body(counting(tx))),
  };
  // A volume whose stored price differs from its segment is billed during the check of its team.
  await books.store.transact(async (tx) => {
    for (const each of ids) {
      const record = await tx.volumes.byId(each);
      if (record !== null) await tx.volumes.update({ ...record, discountPercentage: 10 });
    }
  });
  await new BillingJob({ ...books.deps, store, enforce: neverCalled }).run();
  expect(locked).toEqual([200, 1]);
  expect((await verifyLedger(books.store, books.clock.now())).findings).toEqual([]);
  expect(await balanceOf(books)).toBe(10_000 * DOLLAR - 201 * 30 * 240_000);
});

it('posts, checks and mails as before after a round of a server whose clock was a day ahead [round-a-day-ahead]', async () => {
  const books = await openBooks(26 * DOLLAR);
  await books.run();
  await books.keep({ originalRateMicroUsd: 0 });
  const ahead = new VirtualClock(now + DAY_MS);
  await new BillingJob({ ...books.deps, clock: ahead, enforce: neverCalled }).run();
  const { read } = books.store;
  const soon = now + 3 * MINUTE_MS;
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await pass(books, billing, 3 * MINUTE_MS);
  expect(await read.teams.due({ now: soon + HOUR_MS, limit: 9 })).toHaveLength(1);
  await pass(books, billing, 2 * HOUR_MS);
  expect((await read.mail.list({ limit: 9 })).map(({ kind }) => kind)).toEqual(['low_balance']);
  await billing.stop();
});
