import { describe, expect, it } from 'vitest';
import { insertInstances } from '../support/databases/insert-instances.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const INSTANCES = 2_000;
const POLL_MS = 10_000;

/** With limits as they are by default, and no watch that would look for the machines of inserted rows. */
const limited = (clock: VirtualClock) =>
  startTestOrchestrator({
    clock,
    rateLimits: {},
    reconcile: { watchIntervalMs: 600_000_000 },
  });

describe('a client that keeps to the contract is never refused', () => {
  it('over HTTP: all 2,000 at t0 and 10 s later, with the catalog and the list [poll-budget-over-http]', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await limited(clock);
    const ids = await insertInstances(orchestrator, INSTANCES);
    for (let round = 0; round < 2; round++) {
      for (const id of ids) {
        const { status } = await orchestrator.fetch(`/v1/instances/${id}?region=eu-frankfurt`, {
          headers: { Authorization: `Bearer ${orchestrator.key}` },
        });
        if (status !== 200) expect([id, status]).toEqual([id, 200]);
      }
      for (const path of ['/configurations', '/availability', '/instances', '/volumes/locations'])
        expect((await orchestrator.request('GET', path)).status).toBe(200);
      await clock.advance(POLL_MS);
    }
  });

  it('also to learn that all of 1,000 are destroyed, at once', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await limited(clock);
    for (const id of await insertInstances(orchestrator, 1_000, 'DESTROYED')) {
      const { status } = await orchestrator.fetch(`/v1/instances/${id}`, {
        headers: { Authorization: `Bearer ${orchestrator.key}` },
      });
      if (status !== 404) expect([id, status]).toEqual([id, 404]);
    }
  });
});
