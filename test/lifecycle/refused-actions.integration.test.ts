import { describe, expect, it } from 'vitest';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

/** How an instance comes to each state, and is kept there. */
const waysTo = {
  PROVISIONING: { hangs: 'create' },
  ONLINE: {},
  STOPPING: { hangs: 'stop', asks: 'stop' },
  STOPPED: { asks: 'stop' },
  OFFLINE: { asks: 'stop', isTaken: true },
  ERROR: { isTaken: true },
  DESTROYING: { hangs: 'destroy', asks: 'DELETE' },
} as const;
const orders = ['create', 'stop', 'start', 'destroy'] as const;

describe('an action that its state does not allow', () => {
  it.each([
    ['stop', 'PROVISIONING'],
    ['stop', 'STOPPING'],
    ['stop', 'STOPPED'],
    ['stop', 'OFFLINE'],
    ['stop', 'ERROR'],
    ['stop', 'DESTROYING'],
    ['start', 'PROVISIONING'],
    ['start', 'ONLINE'],
    ['start', 'STOPPING'],
    ['start', 'OFFLINE'],
    ['start', 'ERROR'],
    ['start', 'DESTROYING'],
  ] as const)(
    '(%s while %s) is 409 with a text, changes nothing and asks nothing of the platform [action-not-allowed]',
    async (action, state) => {
      const { hangs, asks, isTaken }: { hangs?: string; asks?: string; isTaken?: boolean } = waysTo[state];
      await using berth = await startPlainOrchestrator(({ method }) => (method === hangs ? 'hang' : 'none'));
      const { orchestrator, platform, clock, passUntil } = berth;
      const id = await berth.create();
      // One that stays: without it, all that there is would be missing at once.
      await berth.create();
      const path = `/instances/${id}`;
      if (hangs !== 'create') await passUntil(path, 'ONLINE');
      if (asks === 'stop') await berth.post(`${path}/stop`);
      if (asks === 'DELETE') await orchestrator.request('DELETE', path);
      if (asks === 'stop' && hangs === undefined) await passUntil(path, 'STOPPED');
      if (isTaken) platform.lose((await orchestrator.store.read.instances.byId(id))?.ownerRef ?? '');
      await passUntil(path, state);
      await clock.advance(1_000);

      const before = await orchestrator.request('GET', path);
      const asked = orders.map(berth.count);
      const refused = await berth.post(`${path}/${action}`);
      expect(refused).toMatchObject({
        status: 409,
        body: { error: { code: 'invalid_state', message: expect.stringContaining(state) } },
      });
      await clock.advance(1_000);
      const after = await orchestrator.request('GET', path);
      expect([after.text, after.headers.get('etag')]).toEqual([before.text, before.headers.get('etag')]);
      expect(after.body).toMatchObject({ status: state, updated_at: before.body['updated_at'] });
      expect(orders.map(berth.count)).toEqual(asked);
    },
  );
});
