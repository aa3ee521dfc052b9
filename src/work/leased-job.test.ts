import { expect, it } from 'vitest';
import { openBooks } from '../marketplace/ledger/ledger.fixture.ts';
import { leasedJob } from '../marketplace/model/fenced-store.ts';

it('runs in one process at a time, and in another once the first is gone', async () => {
  const books = await openBooks();
  const rounds: string[] = [];
  const job = (name: string) =>
    leasedJob(books.deps, {
      name: 'sweeping',
      everyMs: 1_000,
      work: async () => void rounds.push(name),
    });
  const [first, second] = [job('first'), job('second')];
  await first.run();
  await second.run();
  await first.run();
  expect(rounds).toEqual(['first', 'first']);
  await first.stop();
  await second.run();
  expect(rounds.slice(2)).toEqual(['second']);
  // The second job ends without releasing its lease, which then expires.
  const third = job('third');
  await books.clock.advance(59_999);
  await third.run();
  expect(rounds).toHaveLength(3);
  await books.clock.advance(1);
  await third.run();
  expect(rounds.slice(3)).toEqual(['third']);
});

it('writes nothing more in a run that another process has taken over [job-fenced]', async () => {
  const books = await openBooks();
  const written: string[] = [];
  const job = (name: string, between: () => Promise<void>) =>
    leasedJob(books.deps, {
      name: 'writing',
      everyMs: 1_000,
      work: async (store) => {
        await between();
        await store.transact(async (tx) => tx.settings.put('last', name));
        written.push(name);
      },
    });
  const second = job('second', async () => undefined);
  const first = job('first', async () => {
    await books.clock.advance(60_000);
    await second.run();
  });
  await first.run();
  expect([written, await books.store.read.settings.get('last')]).toEqual([['second'], 'second']);
  expect(books.lines.filter(({ level }) => level === 'error')).toEqual([]);
  expect(books.lines.at(-1)).toMatchObject({
    level: 'warn',
    message: expect.stringContaining('outlasted its lease'),
  });
});

it('continues after a failed run, and leaves no timer when it is stopped', async () => {
  const books = await openBooks();
  let rounds = 0;
  const job = leasedJob(books.deps, {
    name: 'failing',
    everyMs: 1_000,
    work: async () => {
      rounds += 1;
      throw new Error('not today');
    },
  });
  job.start();
  for (let second = 0; second < 5; second++) await books.clock.advance(1_000);
  expect(rounds).toBeGreaterThan(2);
  expect(books.lines.filter(({ level }) => level === 'error').length).toBe(rounds);
  await job.stop();
  expect(books.clock.pendingTimers).toBe(0);
  const before = rounds;
  await books.clock.advance(10_000);
  expect(rounds).toBe(before);
});

it('runs once at a time', async () => {
  const books = await openBooks();
  let rounds = 0;
  const job = leasedJob(books.deps, { name: 'once', everyMs: 1_000, work: async () => void rounds++ });
  await Promise.all([job.run(), job.run()]);
  expect(rounds).toBe(1);
});
