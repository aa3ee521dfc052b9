import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { LiveStreams, MAX_STREAMS, TICK_MS } from './live-streams.ts';

let clock: VirtualClock;
let listeners: Set<() => void>;
let streams: LiveStreams;

beforeEach(() => {
  clock = new VirtualClock();
  listeners = new Set();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  streams = new LiveStreams({ subscribe, clock });
});

const commit = (): void => {
  for (const listener of listeners) listener();
};

/** Reads a stream as a page does. `events` are the names of the received events. */
function read(isAllowed = async () => true, client = new AbortController()) {
  const body = streams.open(isAllowed, client.signal);
  const events: string[] = [];
  let end: 'open' | 'closed' | 'cut' = 'open';
  const take = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      events.push(/^event: (\w+)/m.exec(Buffer.from(value).toString())?.[1] ?? 'hello');
    }
  };
  if (body !== null)
    take(body.getReader()).then(
      () => {
        end = 'closed';
      },
      () => {
        end = 'cut';
      },
    );
  return { events, client, isOpen: body !== null, end: () => end };
}

describe('an open page', () => {
  it('is notified of changes, once for many at a time', async () => {
    const { events } = read();
    await clock.advance(TICK_MS);
    expect(events).toEqual(['hello']);
    for (let change = 0; change < 50; change++) commit();
    await clock.advance(TICK_MS);
    expect(events).toEqual(['hello', 'changed']);
  });

  it('takes no slot if its client has left before it is opened', () => {
    streams.open(async () => true, AbortSignal.abort());
    expect([streams.size, listeners.size, clock.pendingTimers]).toEqual([0, 0, 0]);
  });

  it('is notified every ten seconds in any case, because writes of other programs are not observed', async () => {
    const { events } = read();
    await clock.advance(5 * TICK_MS);
    expect(events).toEqual(['hello', 'changed']);
  });

  it('is closed when its session has ended', async () => {
    let isAllowed = true;
    const { events, end } = read(async () => isAllowed);
    isAllowed = false;
    await clock.advance(5 * TICK_MS);
    expect([events, end(), streams.size]).toEqual([['hello'], 'closed', 0]);
  });

  it.each([
    ['closed', (page: ReadableStream) => page.cancel()],
    ['let go, since the server drains', () => streams.close()],
  ])('may be %s while its session is looked up', async (_how, go) => {
    const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
    const isAllowed = () => {
      begun.resolve();
      return answer.promise;
    };
    const page = streams.open(isAllowed, new AbortController().signal);
    const beat = clock.advance(5 * TICK_MS);
    await begun.promise;
    await go(page as ReadableStream);
    const { isOpen } = read();
    answer.resolve(false);
    await beat;
    await clock.advance(0);
    // The page that was opened meanwhile has one timer.
    expect([streams.size, clock.pendingTimers]).toEqual(isOpen ? [1, 1] : [0, 0]);
  });

  it('is closed when the server drains, and no other is opened', async () => {
    const { events, end } = read();
    await clock.advance(0);
    streams.close();
    await clock.advance(0);
    expect([events, end(), read().isOpen]).toEqual([['hello'], 'closed', false]);
  });

  it('is cut off when it reads nothing', async () => {
    const body = streams.open(async () => true, new AbortController().signal);
    await clock.advance(4 * 5 * TICK_MS);
    expect(streams.size).toBe(0);
    await expect(body?.getReader().read()).rejects.toThrow('does not read');
  });

  it('leaves nothing behind once it is closed', async () => {
    const { client } = read();
    await clock.advance(TICK_MS);
    client.abort();
    expect([streams.size, listeners.size, clock.pendingTimers]).toEqual([0, 0, 0]);
    read();
    expect([listeners.size, clock.pendingTimers]).toEqual([1, 1]);
  });
});

it('the number of streams is limited', () => {
  const all = Array.from({ length: MAX_STREAMS + 1 }, () => read());
  expect(all.filter(({ isOpen }) => isOpen)).toHaveLength(MAX_STREAMS);
  all[0]?.client.abort();
  expect(read().isOpen).toBe(true);
});
