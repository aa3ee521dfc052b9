import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import type { Changes } from '../contract/extensions.ts';
import { type FollowedChanges, followChanges } from './follow-changes.ts';
import { type ChangesOptions, ProviderError } from './orchestrator-client.ts';

const changed = (id: string) => ({ kind: 'instance', id, version: 1 }) as const;
const page = (cursor: string, ...ids: string[]): Changes => ({
  cursor,
  reset: false,
  changes: ids.map(changed),
  more: false,
});
const reset = (cursor: string): Changes => ({ cursor, reset: true, changes: [], more: false });
const lost = new ProviderError('timeout', 'GET /x/changes: no whole answer');

/** Follows an orchestrator that gives these answers in order. */
function follow(answers: (Changes | Error)[], cursor: string | null = null) {
  const clock = new VirtualClock();
  const asked: { since: string | null; at: number }[] = [];
  const problems: string[] = [];
  const ended = new AbortController();
  const startedAt = clock.now();
  const listChanges = async (since: string | null, { signal }: ChangesOptions = {}): Promise<Changes> => {
    asked.push({ since, at: clock.now() - startedAt });
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    if (answer !== undefined) return answer;
    return new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    });
  };
  const followed = followChanges(
    { listChanges },
    { clock, cursor, signal: ended.signal, onProblem: ({ problem }) => problems.push(problem) },
  );
  const next = async (): Promise<FollowedChanges | undefined> =>
    (await clock.advanceUntilSettled(followed.next(), 100)).value ?? undefined;
  return { clock, asked, problems, ended, followed, next };
}

it('begins with a reset, and requests the next changes once a reply is processed', async () => {
  const { asked, next } = follow([reset('1'), page('2', 'a'), page('3')]);
  expect(await next()).toMatchObject({ reset: true, changes: [], cursor: '1' });
  expect(asked).toHaveLength(1);
  expect(await next()).toMatchObject({ reset: false, changes: [changed('a')], cursor: '2' });
  expect(await next()).toMatchObject({ changes: [], cursor: '3' });
  expect(asked.map(({ since }) => since)).toEqual([null, '1', '2']);
});

it('continues from a stored cursor', async () => {
  const { asked, next } = follow([page('8', 'a')], '7');
  expect(await next()).toMatchObject({ reset: false, changes: [changed('a')] });
  expect(asked).toMatchObject([{ since: '7' }]);
});

it('retries with the same cursor after a lost reply, with growing pauses', async () => {
  const { asked, problems, next } = follow([...Array(9).fill(lost), page('8', 'a'), page('9')], '7');
  expect(await next()).toMatchObject({ changes: [changed('a')] });
  await next();
  expect(asked.map(({ since }) => since)).toEqual([...Array(10).fill('7'), '8']);
  const pauses = asked.slice(1).map(({ at }, index) => Math.round((at - (asked[index]?.at ?? 0)) / 1000));
  expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60, 60, 60, 1]);
  expect(problems).toEqual(Array(9).fill('timeout'));
});

it('starts over if its cursor is refused', async () => {
  const { asked, next } = follow([new ProviderError('refused', '400', { status: 400 }), reset('1')], '7');
  expect(await next()).toMatchObject({ reset: true, cursor: '1' });
  expect(asked.map(({ since }) => since)).toEqual(['7', null]);
});

it('pauses longer and longer if each reply is a reset', async () => {
  const { asked, next } = follow([reset('1'), reset('2'), reset('3'), page('4'), page('5')]);
  for (let count = 0; count < 5; count++) await next();
  const pauses = asked.slice(1).map(({ at }, index) => Math.round((at - (asked[index]?.at ?? 0)) / 1000));
  expect(pauses).toEqual([1, 2, 4, 1]);
});

it('reports the changes as complete up to the time of the request', async () => {
  const { clock, asked, next } = follow([reset('1'), page('2')]);
  const before = clock.now();
  expect(await next()).toMatchObject({ asOf: before });
  await clock.advance(60_000);
  expect((await next())?.asOf).toBe(before + (asked[1]?.at ?? 0));
  expect(asked[1]?.at).toBeGreaterThanOrEqual(60_000);
});

it('soon requests the rest of a truncated reply, and reports nothing as complete until it has arrived [changes-cut]', async () => {
  const cut = (cursor: string, id: string): Changes => ({ ...page(cursor, id), more: true });
  const { clock, asked, next } = follow([cut('2', 'a'), page('3', 'b'), cut('4', 'c'), page('5', 'd')], '1');
  const startedAt = clock.now();
  expect(await next()).toMatchObject({ changes: [changed('a')], asOf: null });
  expect(await next()).toMatchObject({ changes: [changed('b')], asOf: startedAt + 100 });
  expect(await next()).toMatchObject({ changes: [changed('c')], asOf: startedAt + 100 });
  expect(await next()).toMatchObject({ changes: [changed('d')], asOf: startedAt + 1_200 });
  expect(asked.map(({ at }) => at)).toEqual([0, 100, 1_100, 1_200]);
});

it('throws if the orchestrator does not offer it', async () => {
  const { followed } = follow([new ProviderError('not_found', '404', { status: 404 })]);
  await expect(followed.next()).rejects.toMatchObject({ problem: 'not_found' });
});

it('ends while it waits for a reply, or for its next request, and leaves no timer', async () => {
  const waiting = follow([]);
  const reply = waiting.followed.next();
  waiting.ended.abort();
  expect((await reply).done).toBe(true);
  const pausing = follow([lost]);
  const pause = pausing.followed.next();
  await pausing.clock.advance(100);
  pausing.ended.abort();
  expect((await pause).done).toBe(true);
  expect([waiting.clock.pendingTimers, pausing.clock.pendingTimers]).toEqual([0, 0]);
});
