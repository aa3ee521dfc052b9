import { expect, it } from 'vitest';
import type { Configuration } from '../../src/contract/configuration.ts';
import type { MachineSpec, OwnerRef, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { cordon, uncordon } from '../../src/orchestrator/operate/actions/cordons.ts';
import { listPlatforms } from '../../src/orchestrator/operate/views/platforms.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { actor } from './operator-actions.fixture.ts';

const OFFER = 'h100-sxm-1x';
const REGION = 'eu-frankfurt';
const UNITS = 2;
/** How many machines the project may have, in all zones. */
let quota = 9;

/** A platform whose hosts are availability zones: it says in which zone a machine is, and nothing of what is below. */
function inZones(driver: PlatformDriver, zones: readonly string[]): PlatformDriver {
  const zoneOf = new Map<OwnerRef, string>();
  const takenIn = (zone: string) => [...zoneOf].filter(([, taken]) => taken === zone).map(([ref]) => ref);
  const openZones = (avoid: readonly string[], { host }: Pick<MachineSpec, 'host'> = {}) =>
    zones.filter((zone) => !avoid.includes(zone) && (host === undefined || zone === host));
  const roomIn = (zone: string) => Math.max(0, Math.min(UNITS - takenIn(zone).length, quota - zoneOf.size));
  const shown = <T extends { ref: OwnerRef }>(machine: T) => {
    const host = zoneOf.get(machine.ref);
    return host === undefined ? machine : { ...machine, host };
  };
  return {
    ...driver,
    get: async (ref) => {
      const found = await driver.get(ref);
      return found.answer === 'observed' ? { ...found, value: shown(found.value) } : found;
    },
    list: async () => {
      const listing = await driver.list();
      return listing.answer === 'listed' ? { ...listing, items: listing.items.map(shown) } : listing;
    },
    place: async (spec, avoidHosts) => {
      const hosts = openZones(avoidHosts, spec)
        .map((host) => ({ host, units: roomIn(host), counted: takenIn(host) }))
        .filter(({ units }) => units > 0);
      if (hosts.length > 0) return { answer: 'placed', hosts };
      return { answer: 'refused', code: 'capacity', detail: 'no zone has room' };
    },
    create: async (spec, cookie, call) => {
      const step = await driver.create(spec, cookie, call);
      if (spec.host !== undefined) zoneOf.set(spec.ref, spec.host);
      return step.outcome === 'done' ? { ...step, value: shown(step.value) } : step;
    },
    destroy: async (ref, cookie, order, call) => {
      const step = await driver.destroy(ref, cookie, order, call);
      if (step.outcome === 'done') zoneOf.delete(ref);
      return step;
    },
    inventory: async (avoidHosts = []) => {
      const room = openZones(avoidHosts).reduce((sum, zone) => sum + UNITS - takenIn(zone).length, 0);
      const units = Math.min(room, quota - zoneOf.size);
      return {
        answer: 'counted',
        free: [{ offerId: OFFER, datacenter: 'hal-fra1-b', units }],
        counted: [...zoneOf.keys()],
        hosts: zones.map((host) => ({ host, state: avoidHosts.includes(host) ? 'closed' : 'open' })),
        ...(units < room && { limitedBy: [`quota: instances ${zoneOf.size} of ${quota}`] }),
      };
    },
  };
}

it('zones are hosts: machines are placed in them, a cordon closes one, and quota counts [zones-are-hosts]', async () => {
  const wrapDriver = (driver: PlatformDriver) => inZones(driver, ['az1', 'az2']);
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
  quota = 3;
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
