import { describe, expect, it } from 'vitest';
import { PACE, Pace } from '../../conformance/scenarios/plain/pace.ts';
import { Draws } from '../../conformance/transcript/draws.ts';
import { defaultOptions } from '../../src/marketplace/model/options.ts';
import { AWAITED_MS } from '../../src/marketplace/sync/sync-deployment.ts';

describe('the pace of a plain run', () => {
  it('is that of a marketplace as it is delivered', () => {
    const { polling, lifecycleWaitMs, minimumRuntimeMinutes } = defaultOptions;
    expect(PACE).toMatchObject({
      pollMs: polling.intervalMs,
      awaitedMs: AWAITED_MS,
      awaitedForMs: lifecycleWaitMs,
      catalogMs: polling.catalogMs,
      sweepMs: polling.sweepMs,
      minimumRuntimeMs: minimumRuntimeMinutes * 60_000,
    });
  });

  it('draws the same moments from the same seed, and others from another', () => {
    const moments = (seed: string) => {
      const pace = new Pace(new Draws(seed), 'part');
      return [pace.catalogPauseMs(), pace.firstSweepMs(), pace.retryPauseMs(0), pace.nextPollAt(0, false, 0)];
    };
    expect(moments('a')).toEqual(moments('a'));
    expect(moments('a')).not.toEqual(moments('b'));
  });

  it('polls on the grid of a marketplace, and never sooner than ten seconds after the last poll', () => {
    const pace = new Pace(new Draws('grid'), 'part');
    const wallMs = 1_767_268_800_123;
    for (let begunAt = 7; begunAt < 100_000; begunAt += 977) {
      const dueAt = pace.nextPollAt(begunAt, false, wallMs);
      expect(dueAt - begunAt).toBeGreaterThanOrEqual(10_000);
      expect(dueAt - begunAt).toBeLessThanOrEqual(30_000);
      expect((wallMs + dueAt) % 250 === 0 || dueAt === begunAt + 10_000).toBe(true);
    }
  });
});
