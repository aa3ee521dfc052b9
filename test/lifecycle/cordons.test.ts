import { describe, expect, it } from 'vitest';
import type { Configuration } from '../../src/contract/configuration.ts';
import type { Actor } from '../../src/operator-kit/model.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import {
  cancelMaintenance,
  cordon,
  planMaintenance,
  uncordon,
} from '../../src/orchestrator/operate/actions/cordons.ts';
import { drain } from '../../src/orchestrator/operate/actions/drain.ts';
import { withOverrides } from '../../src/ports/with-overrides.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const actor: Actor = { name: 'ann', source: 'cli', address: null };
const WINDOW_MS = 30_000;
/** In so long the server has cleaned up once. */
const ROUND_MS = 11_000;
/** Two offers in one region, and the first one in another. */
const first = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' };

async function start(options: Parameters<typeof startPlainOrchestrator>[1] = {}) {
  const berth = await startPlainOrchestrator(() => 'none', options);
  const { orchestrator, clock } = berth;
  const { store, catalog } = orchestrator;
  const platforms = new Map([['default', { placesOnHosts: true }]]);
  const deps = { store, clock, random: systemRandom, catalog, platforms };
  const list = async (path: string) => {
    const { body } = await orchestrator.request<{ configurations: Configuration[] }>('GET', path);
    return body.configurations;
  };
  return {
    berth,
    deps,
    store,
    set: (subject: Parameters<typeof cordon.perform>[2], more: { until?: string; reason?: string } = {}) =>
      cordon.perform(deps, actor, { ...subject, ...more }),
    order: async (overrides: object = first) => {
      const { status, body } = await orchestrator.request('POST', '/instances', {
        body: instanceRequest({ ...overrides }),
      });
      return status === 409 ? (body['error'] as { code: string }).code : status;
    },
    regionsOf: async (id = first.configuration_id) =>
      (await list('/availability')).find((offer) => offer.id === id)?.regions ?? [],
    shown: async (id = first.configuration_id) =>
      (await list('/configurations')).find((offer) => offer.id === id) as Configuration,
  };
}

describe('a cordon', () => {
  it("stands from the moment that it is set, also for a server whose clock is behind the operator's [cordon-clock]", async () => {
    const { berth, deps, order, regionsOf } = await start();
    await using _ = berth;
    const ahead = { now: () => deps.clock.now() + 3_600_000 };
    const subject = { kind: 'offer', name: first.configuration_id } as const;
    await cordon.perform({ ...deps, clock: ahead }, actor, subject);
    expect(await order()).toBe('capacity_unavailable');
    expect(await regionsOf()).toEqual([]);
  });

  it('on an offer ends its sale at once, and what runs goes on [cordon-offer]', async () => {
    const { berth, set, order, regionsOf, shown, deps, store } = await start();
    await using _ = berth;
    const id = await berth.create(first);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    expect(await regionsOf()).toContain(first.region);
    await set({ kind: 'offer', name: first.configuration_id }, { reason: 'a recall' });
    expect(await regionsOf()).toEqual([]);
    expect(await shown()).toMatchObject({ available: false, maintenance: false });
    expect(await order()).toBe('capacity_unavailable');
    expect((await berth.read(`/instances/${id}`))['status']).toBe('ONLINE');
    await berth.post(`/instances/${id}/stop`);
    await berth.passUntil(`/instances/${id}`, 'STOPPED');
    expect((await berth.post(`/instances/${id}/start`)).status).toBe(409);
    await uncordon.perform(deps, actor, { kind: 'offer', name: first.configuration_id });
    expect((await berth.post(`/instances/${id}/start`)).status).toBe(200);
    expect(await order()).toBe(201);
    const audit = await store.read.audit.page({ limit: 10 });
    expect(audit.map(({ action, subject, outcome, detail }) => [action, subject, outcome, detail])).toEqual([
      ['cordon.remove', `offer ${first.configuration_id}`, 'done', {}],
      ['cordon.add', `offer ${first.configuration_id}`, 'done', { reason: 'a recall' }],
    ]);
  });

  it('on a region is about nothing beyond it, and ends at its time [cordon-region]', async () => {
    const { berth, set, order, regionsOf } = await start();
    await using _ = berth;
    const before = await regionsOf();
    const until = new Date(berth.clock.now() + WINDOW_MS).toISOString();
    await set({ kind: 'region', name: first.region }, { until });
    const others = before.filter((region) => region !== first.region);
    expect(others.length).toBeGreaterThan(0);
    expect(await regionsOf()).toEqual(others);
    expect([await order(), await order({ ...first, region: others[0] })]).toEqual([
      'capacity_unavailable',
      201,
    ]);
    await berth.clock.advance(WINDOW_MS);
    expect(await regionsOf()).toEqual(before);
    expect(await order()).toBe(201);
  });

  it('on a platform closes all that it has, and on a region of another platform nothing [cordon-platform]', async () => {
    const { berth, set, deps, order, regionsOf } = await start();
    await using _ = berth;
    const platforms = new Map([...deps.platforms, ['east', { placesOnHosts: false }]]);
    const subject = { kind: 'region', name: first.region, platform: 'east' } as const;
    await cordon.perform({ ...deps, platforms }, actor, subject);
    const host = { ...subject, kind: 'host', name: 'kvm-1' } as const;
    await expect(cordon.perform({ ...deps, platforms }, actor, host)).rejects.toThrow('choose hosts by name');
    expect(await regionsOf()).toContain(first.region);
    await set({ kind: 'platform', name: 'default' });
    expect([await regionsOf(), await order()]).toEqual([[], 'capacity_unavailable']);
  });

  it('on a host is told to the driver, which makes and counts nothing there [cordon-host]', async () => {
    const avoided: unknown[] = [];
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withOverrides(driver, {
        create: (spec, cookie) => {
          avoided.push(spec.avoidHosts);
          return driver.create(spec, cookie);
        },
        inventory: async (hosts) => {
          avoided.push(hosts);
          return { answer: 'counted', free: [] };
        },
      });
    const { berth, set, order } = await start({ wrapDriver });
    await using _ = berth;
    await set({ kind: 'host', name: 'kvm-1' });
    expect(await order()).toBe(201);
    await berth.clock.advance(LISTED_MS);
    expect(new Set(avoided.map((hosts) => JSON.stringify(hosts)))).toEqual(new Set(['[]', '["kvm-1"]']));
    expect(avoided.at(-1)).toEqual(['kvm-1']);
  });
});

describe('maintenance', () => {
  it('is shown before it begins, closes what it is about while it lasts, and leaves nothing behind [maintenance]', async () => {
    const { berth, deps, order, shown, regionsOf } = await start();
    await using _ = berth;
    const before = await shown();
    const since = berth.clock.now() + WINDOW_MS;
    const until = since + WINDOW_MS;
    const subject = { kind: 'offer', name: first.configuration_id } as const;
    const { id } = await planMaintenance.perform(deps, actor, {
      ...subject,
      from: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      reason: 'new switches',
    });
    const window = {
      starts_at: new Date(since).toISOString(),
      ends_at: new Date(until).toISOString(),
      regions: before.regions,
      reason: 'new switches',
    };
    const planned = await shown();
    expect(planned).toMatchObject({ available: true, maintenance: false });
    expect(planned.extras?.['berth']).toMatchObject({ maintenance_windows: [window] });
    expect(await order()).toBe(201);
    await berth.clock.advance(WINDOW_MS);
    expect(await shown()).toMatchObject({ available: false, maintenance: true });
    expect([await regionsOf(), await order()]).toEqual([[], 'capacity_unavailable']);
    await berth.clock.advance(WINDOW_MS);
    expect(await shown()).toEqual(before);
    await berth.clock.advance(ROUND_MS);
    await expect(cancelMaintenance.perform(deps, actor, { maintenanceId: id })).rejects.toThrow(
      'There is no maintenance',
    );
    expect(await deps.store.read.cordons.list()).toEqual([]);
  });

  it('of one region leaves the offer for sale in the others; taken back, it is as if it had not been', async () => {
    const { berth, deps, shown, regionsOf } = await start();
    await using _ = berth;
    const before = await shown();
    const subject = { kind: 'region', name: first.region } as const;
    const now = berth.clock.now();
    const { id } = await planMaintenance.perform(deps, actor, subject);
    const during = await shown();
    expect(during).toMatchObject({ available: true, maintenance: false });
    expect(during.extras?.['berth']).toMatchObject({
      maintenance_windows: [{ starts_at: new Date(now).toISOString(), regions: [first.region] }],
    });
    expect(await regionsOf()).not.toContain(first.region);
    await cancelMaintenance.perform(deps, actor, { maintenanceId: id });
    expect(await shown()).toEqual(before);
  });
});

it('a drain cordons, stops nothing, and tells what is left until nothing is [drain]', async () => {
  const { berth, deps, order } = await start();
  await using _ = berth;
  const id = await berth.create(first);
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  const subject = { kind: 'region', name: first.region } as const;
  expect(await drain.perform(deps, actor, { ...subject, reason: 'a move' })).toMatchObject({
    empty: false,
    by_status: { ONLINE: 1 },
    instances: [{ id, status: 'ONLINE', region: first.region, offer: first.configuration_id }],
  });
  expect(await order()).toBe('capacity_unavailable');
  expect((await berth.read(`/instances/${id}`))['status']).toBe('ONLINE');
  await berth.orchestrator.request('DELETE', `/instances/${id}`);
  await berth.passUntil(`/instances/${id}`, 'GONE');
  const again = await drain.perform(deps, actor, subject);
  expect(again).toMatchObject({ empty: true, by_status: {}, cordon: { reason: 'a move', by: 'ann' } });
});

it('a drain does not count a lost instance, whose machine is gone and whose unit is kept [drain-lost]', async () => {
  const { berth, deps } = await start();
  await using _ = berth;
  const { store } = berth.orchestrator;
  const id = await berth.create(first);
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
  const row = await store.read.instances.byId(id);
  berth.platform.lose(row?.ownerRef ?? '');
  await berth.passUntil(`/instances/${id}`, 'ERROR');
  expect(await store.read.work.of(id)).toMatchObject({ kind: 'release' });
  const subject = { kind: 'region', name: first.region } as const;
  expect((await drain.perform(deps, actor, subject)).instances.map((left) => left.id)).not.toContain(id);
});
