import { expect, it } from 'vitest';
import type { Configuration } from '../../src/contract/configuration.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { cordon, uncordon } from '../../src/orchestrator/operate/actions/cordons.ts';
import { listPlatforms } from '../../src/orchestrator/operate/views/platforms.ts';
import { failed, pending, unfinished } from '../../src/platform-model/steps.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { actor } from './operator-actions.fixture.ts';
import { inZones, OFFER, REGION } from './zones.fixture.ts';

it('zones are hosts: machines are placed in them, a cordon closes one, and quota counts [zones-are-hosts]', async () => {
  const limits = { quota: 9, units: 2 };
  const wrapDriver = (driver: PlatformDriver) => inZones(driver, ['az1', 'az2'], limits);
  const berth = await startPlainOrchestrator(() => 'none', { wrapDriver });
  await using _ = berth;
  const { store, catalog, request } = berth.orchestrator;
  const sold = { catalog, platforms: new Map([['default', { placesOnHosts: true }]]) };
  const deps = { store, clock: berth.clock, random: systemRandom, sold };
  const zone = (name: string) => ({ kind: 'host' as const, name });
  const create = async (): Promise<string> => {
    const body = instanceRequest({ configuration_id: OFFER, region: REGION });
    const reply = await request('POST', '/instances', { body });
    if (reply.status !== 201) return (reply.body['error'] as { code: string }).code;
    await berth.passUntil(`/instances/${reply.body['id']}`, 'ONLINE');
    await berth.clock.advance(LISTED_MS);
    return String(reply.body['id']);
  };
  const zoneOf = async (id: string) => (await store.read.instances.byId(id))?.host;
  const isSold = async () => {
    const { body } = await request<{ configurations: Configuration[] }>('GET', '/availability');
    return body.configurations.find(({ id }) => id === OFFER)?.regions.includes(REGION);
  };
  await berth.clock.advance(LISTED_MS);
  expect(await isSold()).toBe(true);
  const first = await create();
  expect(await zoneOf(first)).toBe('az1');

  // A stopped machine keeps its place in the zone and in the quota, but no unit of the catalog, which has three.
  await berth.post(`/instances/${first}/stop`);
  await berth.passUntil(`/instances/${first}`, 'STOPPED');
  await cordon.perform(deps, actor, zone('az1'));
  await berth.clock.advance(LISTED_MS);
  expect(await isSold()).toBe(true);
  const second = await create();
  expect(await zoneOf(second)).toBe('az2');
  await create();
  // The second zone is full, and the first one is cordoned although it has room.
  expect([await isSold(), await create()]).toEqual([false, 'capacity_unavailable']);
  expect((await berth.post(`/instances/${first}/start`)).status).toBe(409);

  await uncordon.perform(deps, actor, zone('az1'));
  await berth.clock.advance(LISTED_MS);
  expect(await isSold()).toBe(true);
  limits.quota = 3;
  await berth.clock.advance(LISTED_MS);
  expect([await isSold(), await create()]).toEqual([false, 'capacity_unavailable']);
  await berth.orchestrator.request('DELETE', `/instances/${second}`);
  await berth.passUntil(`/instances/${second}`, 'GONE');
  await berth.clock.advance(LISTED_MS);
  expect(await isSold()).toBe(true);
  expect(await zoneOf(await create())).toBe('az1');

  const [platform] = await listPlatforms(store.read, new Map());
  expect(platform?.hosts.map(({ host, instances }) => [host, instances])).toEqual([
    ['az1', { ONLINE: 1, STOPPED: 1 }],
    ['az2', { ONLINE: 1 }],
  ]);
});

it.each([
  { interrupted: 1, end: 'ONLINE', attempts: 2 },
  { interrupted: 9, end: 'ERROR', attempts: 2 },
])(
  'a create that was interrupted $interrupted times on the only zone with room ends in $end [interrupted-on-only-host]',
  async ({ interrupted, end, attempts }) => {
    const refs = new Set<string>();
    const wrapDriver = (driver: PlatformDriver): PlatformDriver => {
      // What an interrupted create leaves takes the only unit until it is removed.
      const zoned = inZones(driver, ['az1'], { quota: 9, units: 1 });
      return {
        ...zoned,
        create: async (spec, cookie, call) => {
          refs.add(spec.ref);
          const step = await zoned.create(spec, cookie, call);
          return [...refs].indexOf(spec.ref) < interrupted ? unfinished('it was interrupted') : step;
        },
        destroy: async (ref, cookie, ...rest) =>
          cookie === null ? pending('removing', 500) : zoned.destroy(ref, cookie, ...rest),
      };
    };
    await using berth = await startPlainOrchestrator(() => 'none', { wrapDriver });
    await berth.clock.advance(LISTED_MS);
    const body = instanceRequest({ configuration_id: OFFER, region: REGION });
    const { body: made } = await berth.orchestrator.request('POST', '/instances', { body });
    await berth.passUntil(`/instances/${made['id']}`, end);
    expect(refs.size).toBe(attempts);
  },
);

it('three creates that an outage has interrupted are made again, and do not count as refusals [interrupted-by-outage]', async () => {
  let isAway = false;
  const begun = new Set<string>();
  const wrapDriver = (driver: PlatformDriver): PlatformDriver => {
    const zoned = inZones(driver, ['az1'], { quota: 9, units: 3 });
    return {
      ...zoned,
      list: async () => (isAway ? { answer: 'unknown', reason: 'no answer' } : zoned.list()),
      create: async (spec, cookie, call) => {
        if (isAway) return failed('transient', 'no answer', 'possible');
        if (/-g1$/.test(spec.ref)) return zoned.create(spec, cookie, call);
        if (begun.has(spec.ref)) return unfinished('it was interrupted');
        begun.add(spec.ref);
        return pending('make', 500);
      },
    };
  };
  await using berth = await startPlainOrchestrator(() => 'none', { wrapDriver });
  await berth.clock.advance(LISTED_MS);
  const paths: string[] = [];
  for (let nth = 0; nth < 3; nth++) {
    const body = instanceRequest({ configuration_id: OFFER, region: REGION });
    const { body: made } = await berth.orchestrator.request('POST', '/instances', { body });
    paths.push(`/instances/${made['id']}`);
  }
  await expect.poll(() => begun.size).toBe(3);
  isAway = true;
  await berth.clock.advance(3 * LISTED_MS);
  isAway = false;
  for (const path of paths) await berth.passUntil(path, 'ONLINE');
});

it('a create that a quota refuses is not tried in the other zones [quota-is-not-of-a-host]', async () => {
  const wrapDriver = (driver: PlatformDriver): PlatformDriver => ({
    ...inZones(driver, ['az1', 'az2'], { quota: 9, units: 2 }),
    create: async () => failed('quota', 'the project has three machines'),
  });
  await using berth = await startPlainOrchestrator(() => 'none', { wrapDriver });
  await berth.clock.advance(LISTED_MS);
  const body = instanceRequest({ configuration_id: OFFER, region: REGION });
  const { body: made } = await berth.orchestrator.request('POST', '/instances', { body });
  await berth.passUntil(`/instances/${made['id']}`, 'ERROR');
  const { body: failedOne } = await berth.orchestrator.request('GET', `/instances/${made['id']}`);
  expect(failedOne['error']).toBe('The provider has no quota left for this instance.');
});
