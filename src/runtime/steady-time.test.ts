import { describe, expect, it } from 'vitest';
import { createSteadyTime } from './steady-time.ts';

const START = Date.UTC(2026, 10, 21);
const HOUR_MS = 3_600_000;

function machine() {
  let wall = START;
  let monotonic = 17;
  const jumps: number[] = [];
  const now = createSteadyTime({
    wallNow: () => wall,
    monotonicNow: () => monotonic,
    onJump: (byMs) => jumps.push(byMs),
  });
  return {
    now,
    jumps,
    /** Advances the time by `ms`. The wall clock runs at `rate` times that speed. */
    pass: (ms: number, rate = 1) => {
      monotonic += ms;
      wall += ms * rate;
    },
    setWall: (byMs: number) => {
      wall += byMs;
    },
    setMonotonic: (byMs: number) => {
      monotonic += byMs;
    },
    wall: () => wall,
  };
}

describe('the steady time', () => {
  it('begins at the wall clock and follows it', () => {
    const { now, pass } = machine();
    expect(now()).toBe(START);
    pass(1_000);
    expect(now()).toBe(START + 1_000);
  });

  it.each([
    ['an hour ahead', HOUR_MS, 66_000],
    ['a year ahead', 365 * 24 * HOUR_MS, 66_000],
    ['an hour back', -HOUR_MS, 54_000],
    ['a year back', -365 * 24 * HOUR_MS, 54_000],
  ])(
    'gives a lease of a minute its minute, give or take a tenth, when the wall clock jumps %s',
    (_name, jump, later) => {
      const { now, pass, setWall } = machine();
      setWall(jump);
      expect(now()).toBe(START);
      for (let second = 0; second < 60; second++) {
        pass(1_000);
        now();
      }
      expect(now()).toBe(START + later);
    },
  );

  it('returns to a wall clock that was set, and follows it [steady-time-follows-wall-clock]', () => {
    const { now, pass, setWall, wall } = machine();
    setWall(6_000);
    pass(60_000);
    expect(now()).toBe(wall());
    pass(60_000);
    expect(now()).toBe(wall());
  });

  it.each([
    ['the wall clock swings', (step: number) => ({ wall: step % 2 === 0 ? 90_000 : -90_000, monotonic: 0 })],
    ['the monotonic clock slips', (step: number) => ({ wall: 0, monotonic: step % 3 === 0 ? -40 : 10 })],
  ])('never goes back: %s', (_name, slip) => {
    const { now, pass, setWall, setMonotonic } = machine();
    let last = now();
    for (let step = 0; step < 200; step++) {
      pass(7);
      setWall(slip(step).wall);
      setMonotonic(slip(step).monotonic);
      const next = now();
      expect(next).toBeGreaterThanOrEqual(last);
      last = next;
    }
    expect(last).toBeGreaterThan(START);
  });

  it('follows a wall clock that runs slightly fast, without a warning', () => {
    const { now, pass, wall, jumps } = machine();
    for (let minute = 0; minute < 600; minute++) {
      pass(60_000, 1.0005);
      expect(Math.abs(now() - wall())).toBeLessThanOrEqual(1);
    }
    expect(jumps).toEqual([]);
  });

  it('reports a jump once, and reports the next one after it has caught up', () => {
    const { now, pass, setWall, jumps } = machine();
    setWall(-20_000);
    for (let second = 0; second < 300; second++) {
      pass(1_000);
      now();
    }
    expect(jumps).toEqual([-20_000]);
    setWall(HOUR_MS);
    now();
    expect(jumps).toEqual([-20_000, HOUR_MS]);
  });
});
