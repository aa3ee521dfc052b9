import { describe, expect, it } from 'vitest';
import { SharedTime } from './shared-time.ts';

const START = Date.UTC(2026, 10, 21);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** A machine with a database. Both clocks are right unless set. */
async function machine({ wallAheadMs = 0 } = {}) {
  let truth = START;
  let monotonic = 17;
  let wallAhead = wallAheadMs;
  let databaseAhead = 0;
  const events: string[] = [];
  const time = new SharedTime({
    wallNow: () => truth + wallAhead,
    monotonicNow: () => monotonic,
    onPause: (byMs) => events.push(`pause ${byMs}`),
    onJump: (byMs) => events.push(`jump ${byMs}`),
  });
  const pass = (ms: number): void => {
    truth += ms;
    monotonic += ms;
  };
  const askDatabase = (tookMs = 0) =>
    time.hear(async () => {
      pass(tookMs / 2);
      const answer = truth + databaseAhead;
      pass(tookMs / 2);
      return answer;
    });
  await askDatabase();
  return {
    time,
    events,
    pass,
    askDatabase,
    truth: () => truth,
    /** Pauses the machine: neither of its clocks advances. */
    pause: (ms: number) => {
      truth += ms;
      wallAhead -= ms;
    },
    setWall: (aheadMs: number) => {
      wallAhead = aheadMs;
    },
    setDatabase: (aheadMs: number) => {
      databaseAhead = aheadMs;
    },
    /** Reads the database's clock once a second. */
    live: async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        pass(1_000);
        await askDatabase();
      }
    },
  };
}

describe('the time of several processes', () => {
  it.each([HOUR_MS, -HOUR_MS])('begins at the database, whatever the wall clock says: %d', async (ahead) => {
    const { time, live, truth, events } = await machine({ wallAheadMs: ahead });
    expect(time.now()).toBe(START);
    await live(60);
    expect(time.now()).toBe(truth());
    expect(time.offsetMs()).toBe(0);
    expect(events).toEqual([]);
  });

  it('recovers from a pause as soon as the wall clock is right, and is out of sync until then', async () => {
    const { time, events, pause, live, setWall, askDatabase, truth } = await machine();
    pause(10 * MINUTE_MS);
    await live(3);
    expect(time.offsetMs()).toBeLessThan(-9 * MINUTE_MS);
    setWall(0);
    await askDatabase();
    expect(time.now()).toBe(truth());
    expect(time.offsetMs()).toBe(0);
    expect(events).toEqual(['jump 600000', expect.stringMatching(/^pause 599/)]);
  });

  it('is out of sync at once when the wall clock jumps, before the database answers', async () => {
    const { time, pause, setWall, askDatabase } = await machine();
    pause(10 * MINUTE_MS);
    setWall(0);
    expect(time.offsetMs()).toBe(-10 * MINUTE_MS);
    await askDatabase();
    expect(time.offsetMs()).toBe(0);
  });

  it.each([
    ['an hour ahead', HOUR_MS, 66_000],
    ['a year ahead', YEAR_MS, 66_000],
    ['an hour back', -HOUR_MS, 54_000],
    ['a year back', -YEAR_MS, 54_000],
  ])('gives a lease of a minute its minute when the database alone jumps %s', async (_what, jump, later) => {
    const { time, events, live, setDatabase } = await machine();
    setDatabase(jump);
    await live(1);
    const first = time.now();
    await live(60);
    expect(time.now() - first).toBe(later);
    expect(Math.sign(time.offsetMs())).toBe(-Math.sign(jump));
    expect(events).toEqual([`jump ${jump}`]);
  });

  it('does not treat a year as a pause, even if the wall clock jumps with the database', async () => {
    const { time, live, setDatabase, setWall, truth } = await machine();
    setDatabase(YEAR_MS);
    setWall(YEAR_MS);
    await live(60);
    expect(time.now()).toBeLessThan(truth() + 7_000);
  });

  it('ignores a wall clock that jumps alone', async () => {
    const { time, live, setWall, truth, events } = await machine();
    setWall(HOUR_MS);
    await live(600);
    expect(time.now()).toBe(truth());
    expect(time.offsetMs()).toBe(0);
    expect(events).toEqual([]);
  });

  it('never goes back', async () => {
    const { time, live, setDatabase, setWall, pass, askDatabase } = await machine();
    let last = time.now();
    for (let round = 0; round < 100; round++) {
      setDatabase(round % 2 === 0 ? 90_000 : -90_000);
      setWall(round % 3 === 0 ? 90_000 : -90_000);
      await live(1);
      pass(7);
      await askDatabase(20);
      expect(time.now()).toBeGreaterThanOrEqual(last);
      last = time.now();
    }
  });

  it('dates an answer to the middle of its round trip, and ignores a slow one', async () => {
    const { time, askDatabase, setDatabase, truth } = await machine();
    await askDatabase(800);
    expect(time.offsetMs()).toBe(0);
    setDatabase(20_000);
    await askDatabase(4_000);
    expect(time.offsetMs()).toBe(0);
    expect(time.now()).toBe(truth());
  });
});
