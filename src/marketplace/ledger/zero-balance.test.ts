import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { LeaseLost } from '../../work/lease.ts';
import { ApiError } from '../contract/errors.ts';
import { openBooks } from './ledger.fixture.ts';
import { dueStep, ZeroBalance } from './zero-balance.ts';

const HOUR_MS = 3_600_000;
const grace = { graceMs: HOUR_MS, stoppedGraceMs: 72 * HOUR_MS };

it.each([
  ['running', null, HOUR_MS - 1, null],
  ['running', null, HOUR_MS, 'stop'],
  ['running', null, 1.5 * HOUR_MS - 1, 'stop'],
  ['running', null, 1.5 * HOUR_MS, 'terminate'],
  ['stopped', -HOUR_MS, 72 * HOUR_MS - 1, null],
  ['stopped', -HOUR_MS, 72 * HOUR_MS, 'terminate'],
  ['stopped', HOUR_MS, 73 * HOUR_MS - 1, null],
  ['stopped', HOUR_MS, 73 * HOUR_MS, 'terminate'],
  ['deploying', null, 100 * HOUR_MS, null],
] as const)(
  '%s, paused at %s: after %i ms without balance the step is %s',
  (status, pausedAt, after, step) => {
    expect(dueStep({ status, pausedAt }, 0, grace, after)).toBe(step);
  },
);

it('terminates deployments that cannot be stopped, retries failures, and does not wait for hanging calls', async () => {
  const books = await openBooks();
  for (const id of ['dep-hangs', 'dep-cannot', 'dep-fails', 'dep-stops']) await books.run({ id });
  const calls: string[] = [];
  const hanging = Promise.withResolvers<void>();
  const stops: Record<string, () => Promise<void>> = {
    'dep-hangs': () => hanging.promise,
    'dep-cannot': async () => Promise.reject(new ApiError('ACTION_UNSUPPORTED', 'It cannot be stopped.')),
    'dep-fails': async () => Promise.reject(new ApiError('PROVIDER_REFUSED', 'Not now.')),
    'dep-stops': async () => undefined,
  };
  const zeroBalance = new ZeroBalance(books.deps, {
    stop: (id) => {
      calls.push(`stop ${id}`);
      return stops[id]?.() ?? Promise.reject(new Error('unknown'));
    },
    terminate: async (id) => void calls.push(`terminate ${id}`),
    deleteVolume: async ({ id }) => void calls.push(`delete ${id}`),
  });
  const exhaustedAt = books.clock.now();
  await zeroBalance.check(books.deps.store, teamId, exhaustedAt, exhaustedAt + HOUR_MS);
  await books.clock.advance(1);
  expect(calls.toSorted()).toEqual([
    ...['stop dep-cannot', 'stop dep-fails', 'stop dep-hangs', 'stop dep-stops', 'terminate dep-cannot'],
  ]);
  await zeroBalance.check(books.deps.store, teamId, exhaustedAt, exhaustedAt + HOUR_MS);
  expect(calls.filter((call) => call === 'stop dep-fails')).toHaveLength(2);
  expect(calls.filter((call) => call === 'stop dep-hangs')).toHaveLength(1);
  hanging.resolve();
  await zeroBalance.settled();
  expect(books.lines).toContainEqual(
    expect.objectContaining({
      level: 'error',
      message: expect.stringContaining('could not end a deployment'),
    }),
  );
});

it('logs nothing about a team that another process has taken over', async () => {
  const books = await openBooks();
  await books.run();
  const isLost = () => Promise.reject(new LeaseLost('the lease billing is another process’s by now'));
  const zeroBalance = new ZeroBalance(books.deps, { stop: isLost, terminate: isLost, deleteVolume: isLost });
  const exhaustedAt = books.clock.now();
  await zeroBalance.check(books.deps.store, teamId, exhaustedAt, exhaustedAt + HOUR_MS);
  await zeroBalance.settled();
  expect(books.lines.filter(({ level }) => level === 'error')).toEqual([]);
});
