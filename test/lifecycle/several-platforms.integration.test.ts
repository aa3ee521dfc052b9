import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Listing, ObservedMachine } from '../../src/orchestrator/model/platform-driver.ts';
import { silentLog } from '../support/doubles/log.ts';
import { PlainPlatform } from '../support/doubles/plain-platform.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { backUp } from '../support/restored.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const MINUTE_MS = 60_000;
const HERE = String(instanceRequest()['configuration_id']);
const EAST = 'east-only';

type Berth = Awaited<ReturnType<typeof start>>;
let east: PlainPlatform;
let berth: Berth;
let alarms: { fields: object; message: string }[];

/** An orchestrator on two platforms: `default`, and `east` with an offer of its own in the same region. */
async function start() {
  const clock = new VirtualClock();
  east = new PlainPlatform(clock);
  alarms = [];
  return startPlainOrchestrator(undefined, {
    clock,
    otherPlatforms: new Map([['east', east.driver]]),
    log: {
      ...silentLog,
      error: (fields, message) => alarms.push({ fields, message }),
    },
    changeCatalog: (catalog) => {
      const offer = catalog.offers.get(HERE);
      if (offer === undefined) throw new Error(`the catalog has no ${HERE}`);
      const offers = new Map([...catalog.offers, [EAST, { ...offer, id: EAST, platform: 'east' }]]);
      return { ...catalog, offers };
    },
  });
}

beforeEach(async () => {
  berth = await start();
});
afterEach(() => berth[Symbol.asyncDispose]());

const online = async (configuration: string): Promise<string> => {
  const id = await berth.create({ configuration_id: configuration });
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  return id;
};
const statusOf = async (id: string) => (await berth.read(`/instances/${id}`))['status'];
const offered = async () => {
  const { body } = await berth.orchestrator.request<{ configurations: { id: string }[] }>(
    'GET',
    '/availability',
  );
  const ids = body.configurations.map(({ id }) => id);
  return [ids.includes(HERE), ids.includes(EAST)];
};
const metric = async (name: string): Promise<string | undefined> => {
  const text = await (await berth.orchestrator.admin.fetch('/metrics')).text();
  return new RegExp(`^${name}\\{platform="east"\\} (\\S+)$`, 'm').exec(text)?.[1];
};

describe('an orchestrator on two platforms', () => {
  it('makes each machine on the platform of its offer', async () => {
    const [here, there] = [await online(HERE), await online(EAST)];
    expect([...berth.platform.machines.keys()]).toEqual([`berth-${here}`]);
    expect([...east.machines.keys()]).toEqual([`berth-${there}`]);
    const { instances } = berth.orchestrator.store.read;
    expect([(await instances.byId(here))?.platform, (await instances.byId(there))?.platform]).toEqual([
      'default',
      'east',
    ]);
  });

  it('sells and works on one while the other does not answer, and goes on there when it does [platform-down-alone]', async () => {
    const there = await online(EAST);
    const { list, get, stop } = east.driver;
    const hang = () => new Promise<never>(() => undefined);
    Object.assign(east.driver, { list: hang, get: hang, stop: hang });
    await berth.clock.advance(MINUTE_MS);
    expect(await offered()).toEqual([true, false]);
    expect(await metric('berth_platform_up')).toBe('0');
    expect((await berth.post('/instances', instanceRequest({ configuration_id: EAST }))).status).toBe(409);
    await berth.post(`/instances/${there}/stop`);
    const here = await online(HERE);
    await berth.post(`/instances/${here}/stop`);
    await berth.passUntil(`/instances/${here}`, 'STOPPED');
    await berth.orchestrator.request('DELETE', `/instances/${here}`);
    await berth.passUntil(`/instances/${here}`, 'GONE');
    expect(await statusOf(there)).toBe('STOPPING');
    expect(alarms.map(({ fields }) => fields)).toEqual([expect.objectContaining({ platform: 'east' })]);
    Object.assign(east.driver, { list, get, stop });
    await berth.passUntil(`/instances/${there}`, 'STOPPED', 3 * MINUTE_MS);
    expect(await offered()).toEqual([true, true]);
  });

  it('ends what one really lost while the other lists nothing [platform-empty-alone]', async () => {
    const there = await Promise.all([EAST, EAST, EAST].map(online));
    const here = await online(HERE);
    await online(HERE);
    east.driver.list = async () => ({ answer: 'listed', items: [] });
    east.driver.get = async () => ({ answer: 'gone' });
    await berth.clock.advance(MINUTE_MS);
    berth.platform.lose(`berth-${here}`);
    await berth.passUntil(`/instances/${here}`, 'ERROR');
    expect(await Promise.all(there.map(statusOf))).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
    expect(await metric('berth_platform_suspect')).toBe('1');
  });

  it('takes no machine of one for an orphan of the other, where both show the same [platforms-show-the-same]', async () => {
    const here = await online(HERE);
    const { list } = berth.platform.driver;
    east.driver.list = list;
    east.driver.destroy = () => {
      throw new Error('it is not its own');
    };
    await berth.orchestrator.request('DELETE', `/instances/${here}`);
    await berth.clock.advance(15 * MINUTE_MS);
    expect(await statusOf(here)).toBe('GONE');
    expect(alarms).toEqual([]);
  });

  it('tells which host had the machine last', async () => {
    const there = await online(EAST);
    const { list } = east.driver;
    let host = 'rack-1';
    east.driver.list = async () => {
      const listing: Listing<ObservedMachine> = await list();
      if (listing.answer === 'unknown') return listing;
      return { ...listing, items: listing.items.map((machine) => ({ ...machine, host })) };
    };
    const recorded = async () => (await berth.orchestrator.store.read.instances.byId(there))?.host;
    const { updated_at: before } = await berth.read(`/instances/${there}`);
    await berth.clock.advance(10_000);
    expect(await recorded()).toBe('rack-1');
    host = 'rack-2';
    await berth.clock.advance(10_000);
    expect(await recorded()).toBe('rack-2');
    expect((await berth.read(`/instances/${there}`))['updated_at']).toBe(before);
  });

  it('attaches no volume of one to an instance of the other [attach-across-platforms]', async () => {
    const there = await online(EAST);
    const volume = await berth.createVolume();
    await berth.passUntil(`/volumes/${volume}`, 'AVAILABLE');
    const attach = await berth.post(`/volumes/${volume}/attach`, { instance_ids: [there] });
    expect([attach.status, attach.body['error']]).toMatchObject([409, { code: 'invalid_state' }]);
    const inline = await berth.post(
      '/instances',
      instanceRequest({ configuration_id: EAST, volume_ids: [volume] }),
    );
    expect([inline.status, inline.text]).toEqual([400, expect.stringContaining('volume_ids[0]')]);
    const made = await berth.post('/volumes', volumeRequest({ instance_ids: [there] }));
    expect([made.status, made.text]).toEqual([400, expect.stringContaining('instance_ids[0]')]);
    for (const { text } of [attach, inline, made]) expect(text).not.toMatch(/default|"east"/);
    expect(berth.platform.volumes.size + east.volumes.size).toBe(1);
  });

  it('denies nothing after a restore that another server may still bring back [restored-elsewhere]', async () => {
    const lives = await backUp(berth.orchestrator);
    const unknown = `/instances/inst-${'0'.repeat(32)}`;
    const starting = lives();
    const here = await berth.clock.advanceUntilSettled(starting, 100);
    await berth.clock.advance(MINUTE_MS);
    const { marks } = here.store.read;
    expect([await marks.get('restored_from:default'), await marks.get('restored_from:east')]).toEqual([
      null,
      expect.any(Number),
    ]);
    expect(await here.read(unknown)).toBe('503');
    await here.store.transact((tx) => tx.marks.remove('restored_from:east'));
    expect(await here.read(unknown)).toBe('404');
    await here[Symbol.asyncDispose]();
  });

  it('tells of a platform that is not configured any more and has ended rows', async () => {
    const there = await online(EAST);
    await berth.orchestrator.request('DELETE', `/instances/${there}`);
    await berth.passUntil(`/instances/${there}`, 'GONE');
    const lives = await backUp(berth.orchestrator);
    const starting = lives();
    const here = await berth.clock.advanceUntilSettled(starting, 100);
    expect(
      here.lines.flatMap(({ fields, message }) => (/a platform of this name/.test(message) ? [fields] : [])),
    ).toEqual([{ platform: 'east', instances: 1, volumes: 0 }]);
    expect(await here.read(`/instances/${there}`)).toBe('404');
    await here[Symbol.asyncDispose]();
  });
});
