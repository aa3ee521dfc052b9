import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { FailedLogins } from './rate-limits.ts';

const client = () => new AbortController().signal;

function start(enabled = true) {
  const clock = new VirtualClock();
  const failed = new FailedLogins(clock, { enabled });
  /** Fails once. Returns how long the answer was delayed, in milliseconds. */
  const fail = async (name: string | undefined, address: string): Promise<number> => {
    const from = clock.now();
    let isHeld = true;
    const delayed = failed.delay(name, address, client()).then(() => {
      isHeld = false;
    });
    for (let seconds = 0; isHeld && seconds < 60; seconds++) {
      await clock.advance(0);
      if (isHeld) await clock.advance(1_000);
    }
    await delayed;
    return clock.now() - from;
  };
  return { clock, failed, fail };
}

it('holds no answer to the first ten failures, and each later one for up to six seconds', async () => {
  const { clock, failed } = start();
  const delayed: number[] = [];
  const from = clock.now();
  const all = Array.from({ length: 30 }, async (_, index) => {
    await failed.delay('default', '198.51.100.1', client());
    delayed[index] = clock.now() - from;
  });
  await clock.advance(60_000);
  await Promise.all(all);
  expect(delayed).toEqual([...new Array(10).fill(0), ...new Array(20).fill(6_000)]);
  expect([failed.delayed, clock.pendingTimers]).toEqual([0, 0]);
});

it('counts each name from each address by itself, and wrong keys apart from every name', async () => {
  const { fail } = start();
  for (let count = 0; count < 12; count++) await fail('default', '198.51.100.1');
  expect(await fail('default', '198.51.100.1')).toBeGreaterThan(0);
  expect(await fail('default', '198.51.100.2')).toBe(0);
  expect(await fail('other', '198.51.100.1')).toBe(0);
  expect(await fail(undefined, '198.51.100.1')).toBe(0);
});

it('forgets a failure in six seconds, and all of them in little more than a minute', async () => {
  const { clock, fail } = start();
  for (let count = 0; count < 10; count++) await fail('default', '198.51.100.1');
  await clock.advance(6_000);
  expect(await fail('default', '198.51.100.1')).toBe(0);
  expect(await fail('default', '198.51.100.1')).toBeGreaterThan(0);
  await clock.advance(70_000);
  expect(await fail('default', '198.51.100.1')).toBe(0);
});

it('holds nothing for a client that has gone, nor once the server stops', async () => {
  const { clock, failed, fail } = start();
  for (let count = 0; count < 12; count++) await fail('default', '198.51.100.1');
  const gone = new AbortController();
  const delayed = failed.delay('default', '198.51.100.1', gone.signal);
  gone.abort();
  await delayed;
  await failed.delay('default', '198.51.100.1', gone.signal);
  const last = failed.delay('default', '198.51.100.1', client());
  expect(failed.delayed).toBe(1);
  failed.close();
  await last;
  await failed.delay('default', '198.51.100.1', client());
  expect([failed.delayed, clock.pendingTimers]).toEqual([0, 0]);
});

it('holds nothing where the operator has turned limits off', async () => {
  const { fail } = start(false);
  for (let count = 0; count < 30; count++) expect(await fail('default', '198.51.100.1')).toBe(0);
});
