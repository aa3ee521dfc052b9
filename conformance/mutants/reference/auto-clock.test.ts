import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createAutoClock } from './auto-clock.ts';

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a clock that advances by itself', () => {
  it('jumps to the earliest sleeper, and no further than that', async () => {
    const clock = createAutoClock({ startWallMs: 1_000 });
    const woken: string[] = [];
    await Promise.all([
      clock.sleep(60_000).then(() => woken.push(`late ${clock.now()}`)),
      clock.sleep(10).then(() => woken.push(`early ${clock.now()}`)),
    ]);
    expect(woken).toEqual(['early 10', 'late 60000']);
    expect(clock.wall()).toBe(61_000);
  });

  it('does not move for timers alone', async () => {
    const clock = createAutoClock();
    clock.after(5, () => expect.unreachable('nobody sleeps'));
    await turns(50);
    expect(clock.now()).toBe(0);
  });

  it('fires the timers on the way in order, each at its instant, and not the ones cancelled or beyond', async () => {
    const clock = createAutoClock();
    const fired: string[] = [];
    const note = (name: string) => () => fired.push(`${name} ${clock.now()}`);
    clock.after(30, note('second'));
    clock.after(10, () => {
      note('first')();
      clock.after(15, note('set by the first'));
    });
    clock.after(40, note('with the sleeper'));
    clock.after(20, note('cancelled'))();
    clock.after(41, note('beyond'));
    await clock.sleep(40);
    expect(fired).toEqual(['first 10', 'set by the first 25', 'second 30', 'with the sleeper 40']);
  });

  it('does not advance during a wait for something real', async () => {
    const clock = createAutoClock();
    const server = createServer();
    const listening = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const seen = clock.during(listening).then(() => clock.now());
    const slept = clock.sleep(7).then(() => clock.now());
    expect(await seen).toBe(0);
    const release = clock.hold();
    await turns(50);
    expect(clock.now()).toBe(0);
    release();
    release();
    expect(await slept).toBe(7);
    await new Promise((resolve) => server.close(resolve));
  });

  it('waits for what a woken sleeper does before it wakes the next', async () => {
    const clock = createAutoClock();
    const early = clock.sleep(1).then(async () => {
      await turns(2);
      return clock.now();
    });
    await Promise.all([clock.sleep(2), early]);
    expect(await early).toBe(1);
  });

  it('rejects a sleep with the reason of its signal, before or during it', async () => {
    const clock = createAutoClock();
    const reason = new Error('stopped');
    await expect(clock.sleep(1, AbortSignal.abort(reason))).rejects.toBe(reason);
    const stopped = new AbortController();
    clock.after(5, () => stopped.abort(reason));
    await Promise.all([expect(clock.sleep(10, stopped.signal)).rejects.toBe(reason), clock.sleep(5)]);
    expect(clock.now()).toBe(5);
  });
});
