import { describe, expect, it } from 'vitest';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import {
  create,
  listings,
  metric,
  offered,
  online,
  refOf,
  startTroubled,
  statuses,
} from './platform-trouble.fixture.ts';

describe('a platform that cannot be believed', () => {
  it('and denies every machine ends none, sells nothing, raises one alarm, and is believed when it lists them again [every-machine-denied]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say, alarms } = troubled;
    const ids = await online(orchestrator, 3);
    say({ deniesAll: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 3);
    expect(await statuses(orchestrator, ids)).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
    expect(await metric(orchestrator, 'berth_platform_suspect{platform="default"}')).toBe('1');
    expect(await metric(orchestrator, 'berth_platform_up{platform="default"}')).toBe('0');
    expect(alarms(/too many machines are missing/)).toMatchObject([
      { fields: { problem: '3 of 3 expected machines are missing from its listing' } },
    ]);
    expect(await metric(orchestrator, 'berth_alarms{kind="platform_suspect"}')).toBe('1');
    const standing = () => orchestrator.store.read.alarms.list();
    await until('the alarm is stored', async () => (await standing()).length === 1);
    expect(await standing()).toMatchObject([{ kind: 'platform_suspect', subject: 'default' }]);
    const refused = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    expect(refused.body['error']).toMatchObject({ code: 'capacity_unavailable' });
    say({});
    await until('it is offered again', async () => (await offered(orchestrator)) > 0);
    await until('no alarm stands', async () => (await standing()).length === 0);
    expect(await statuses(orchestrator, ids)).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
  });

  it('proves no deletion: what was deleted stays DESTROYING until it can be believed', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say, counts } = troubled;
    const [deleted = '', ...others] = await online(orchestrator, 3);
    say({ deniesAll: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await orchestrator.request('DELETE', `/instances/${deleted}`);
    await listings(troubled, 3);
    expect(await statuses(orchestrator, [deleted, ...others])).toEqual(['DESTROYING', 'ONLINE', 'ONLINE']);
    expect(counts.destroy).toBe(0);
    say({});
    await orchestrator.waitFor(deleted, 'GONE');
    expect(await statuses(orchestrator, others)).toEqual(['ONLINE', 'ONLINE']);
  });

  it('and loses a page is not believed either [listing-loses-a-page]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say } = troubled;
    const ids = await online(orchestrator, 5);
    const kept = new Set([await refOf(orchestrator, ids[0] ?? ''), await refOf(orchestrator, ids[1] ?? '')]);
    say({ listsWithout: ({ ref }) => !kept.has(ref) });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 2);
    expect(new Set(await statuses(orchestrator, ids))).toEqual(new Set(['ONLINE']));
  });

  it('because it refuses our credentials sells nothing until a listing that began later [platform-credentials-refused]', async () => {
    await using troubled = await startTroubled({ reconcile: { watchIntervalMs: 1_000 } });
    const { orchestrator, say, alarms } = troubled;
    say({ refusesOrders: true });
    const id = await create(orchestrator);
    await create(orchestrator);
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    expect(alarms(/does not answer/)).toMatchObject([
      { fields: { problem: expect.stringContaining('the key is revoked') } },
    ]);
    expect(await statuses(orchestrator, [id])).toEqual(['PROVISIONING']);
    say({});
    await orchestrator.waitFor(id, 'ONLINE');
  });

  it('at the start sells nothing and does nothing until it is listed [start-without-listing]', async () => {
    await using troubled = await startTroubled({}, { isDown: true });
    const { orchestrator, say, counts } = troubled;
    expect([await offered(orchestrator), counts.list]).toEqual([0, 1]);
    say({});
    await until('it is offered', async () => (await offered(orchestrator)) > 0);
    await orchestrator.waitFor(await create(orchestrator), 'ONLINE');
  });
});
