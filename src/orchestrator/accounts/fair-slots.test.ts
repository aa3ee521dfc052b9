import { expect, it } from 'vitest';
import { FairSlots } from './password-checks.ts';

const NEVER = new AbortController().signal;

/** Slots, and jobs that the test ends, in the order in which they began. */
function slots(limit: number) {
  const fair = new FairSlots(limit);
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (owner: string, job: string, signal = NEVER): Promise<void> =>
    fair.run(
      owner,
      () => {
        began.push(job);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.push(resolve);
        return promise;
      },
      signal,
    );
  const endAll = async (): Promise<void> => {
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
      end();
      await new Promise(setImmediate);
    }
  };
  return { fair, began, ask, endAll };
}

it('runs no more jobs at a time than there are slots', async () => {
  const { fair, began, ask, endAll } = slots(2);
  const all = ['a', 'b', 'c'].map((job) => ask('me', job));
  expect([began, fair.waiting]).toEqual([['a', 'b'], 1]);
  await endAll();
  await Promise.all(all);
  expect([began, fair.waiting]).toEqual([['a', 'b', 'c'], 0]);
});

it('gives waiting accounts turns: a thousand jobs of one account delay the job of another by one', async () => {
  const { began, ask, endAll } = slots(1);
  const flood = Array.from({ length: 1_000 }, (_, index) => ask('flood', `flood ${index}`));
  const mine = ask('me', 'mine');
  await endAll();
  await Promise.all([...flood, mine]);
  expect(began.indexOf('mine')).toBe(2);
});

it('continues after a job fails', async () => {
  const fair = new FairSlots(1);
  const failing = fair.run('me', async () => Promise.reject(new Error('broken')), NEVER);
  const next = fair.run('me', async () => 'done', NEVER);
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('done');
});

it('never begins the job of a client that has gone, and forgets it', async () => {
  const { fair, began, ask, endAll } = slots(1);
  const first = ask('me', 'first');
  const gone = new AbortController();
  const dropped = [ask('me', 'dropped', gone.signal), ask('you', 'dropped', gone.signal)];
  const last = ask('me', 'last');
  gone.abort();
  for (const job of dropped) await expect(job).rejects.toThrow('disconnected');
  await expect(ask('me', 'dropped', gone.signal)).rejects.toThrow('disconnected');
  expect(fair.waiting).toBe(1);
  await endAll();
  await Promise.all([first, last]);
  expect([began, fair.waiting]).toEqual([['first', 'last'], 0]);
});

it('begins no job of a client that has gone, nor after it was closed, although a slot is free', async () => {
  const { fair, began, ask } = slots(2);
  await expect(ask('me', 'dropped', AbortSignal.abort())).rejects.toThrow('disconnected');
  fair.close();
  await expect(ask('me', 'late')).rejects.toMatchObject({ code: 'unavailable' });
  expect(began).toEqual([]);
});

it('a closed queue refuses jobs that have not begun and lets running jobs end', async () => {
  const { fair, began, ask, endAll } = slots(1);
  const running = ask('me', 'running');
  const waiting = ask('me', 'waiting');
  fair.close();
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
  await endAll();
  await running;
  expect(began).toEqual(['running']);
});
