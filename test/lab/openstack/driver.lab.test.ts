import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import { openstack } from '../../../src/drivers/openstack/driver.ts';
import { type OpenStackConfig, openstackConfigSchema } from '../../../src/drivers/openstack/options.ts';
import type {
  ObservedMachine,
  PlatformDriver,
  Presence,
  Step,
} from '../../../src/orchestrator/model/platform-driver.ts';
import { NoRoomForMark } from '../../../src/ports/errors.ts';
import { anOrder } from '../../support/rows/orchestrator-rows.ts';
import { contextOf, type LabMachine, settingOf, specOf } from '../driver-context.ts';
import type { Answer } from './api.ts';
import { image, networks } from './catalog.ts';
import { Cloud } from './cloud.ts';

let cloud: Cloud;
let cloudsFile: string;
beforeAll(async () => {
  cloud = await Cloud.start();
  cloudsFile = cloud.writeCloudsFile();
});
afterAll(() => cloud?.[Symbol.asyncDispose]());

const machine: LabMachine = { datacenter: 'fra', image: image.name, vcpus: 4, memoryGb: 1 };
const offer = { flavor: 'large' };

const optionsOf = (more: object = {}): OpenStackConfig =>
  openstackConfigSchema.parse({
    ...{ driver: 'openstack', cloud: 'lab', clouds_file: cloudsFile, network: networks.tenants.name },
    datacenters: { fra: { zones: ['az1'] } },
    ...more,
  });
const open = (more?: object, ofOffer?: object, onStop?: LabMachine['onStop']): Promise<PlatformDriver> =>
  openstack.open(optionsOf(more), settingOf({ ...machine, onStop }, { ...offer, ...ofOffer }));

async function done<T>(call: (cookie: string | null) => Promise<Step<T>>): Promise<T> {
  let cookie: string | null = null;
  for (;;) {
    const step: Step<T> = await call(cookie);
    if (step.outcome === 'done') return step.value;
    if (step.outcome === 'failed') throw new Error(JSON.stringify(step));
    ({ cookie } = step);
    await sleep(step.pollAfterMs);
  }
}

async function removeAll(driver: PlatformDriver): Promise<void> {
  const listing = await driver.list();
  for (const { ref } of listing.answer === 'listed' ? listing.items : [])
    await done((cookie) => driver.destroy(ref, cookie, anOrder));
  const volumes = await driver.volumes?.list();
  for (const { ref } of volumes?.answer === 'listed' ? volumes.items : [])
    await done((cookie) => driver.volumes?.destroy(ref, cookie, anOrder) ?? Promise.reject());
  await driver.close();
  expect(await cloud.contents()).toEqual([]);
}

/** As the operator does who has it now. */
async function removeReleased(ref: string): Promise<string[]> {
  const { own, operator } = cloud;
  const { servers } = await own.send('nova-api', 'GET', `/servers/detail?name=${ref}`);
  const [{ id, metadata }] = servers;
  expect(Object.keys(metadata).filter((key) => key.startsWith('berth'))).toEqual([]);
  const { ports } = await own.send('neutron', 'GET', `/ports?device_id=${id}`);
  await operator.remove(id);
  for (const port of ports) await own.send('neutron', 'DELETE', `/ports/${port.id}`);
  const { images } = await own.send('glance', 'GET', '/images?visibility=private');
  for (const one of images) await own.send('glance', 'DELETE', `/images/${one.id}`);
  return [`the disk of ${ref}`];
}

describe.each([
  ['fixed addresses', {}, {}, 'hold'],
  ['floating IPs', { floating_network: networks.outside.name }, {}, 'release'],
  ['boot volumes', {}, { boot_volume: {} }, 'release'],
] as const)('OpenStack with %s', (_what, options, ofOffer, onStop) => {
  describeDriver('the services of a cloud', {
    setup: async () => {
      const { guest: _, ...context } = contextOf(machine, undefined, {
        driver: await open(options, ofOffer, onStop),
        reopen: () => open(options, ofOffer, onStop),
        // Nova keeps the marks of a shelved server.
        ...(onStop === 'hold' && { removeReleased }),
        openUnreachable: async () => {
          const entry = { ...cloud.entry, auth: { ...cloud.entry.auth, auth_url: 'http://127.0.0.1:1/v3' } };
          return open({ ...options, clouds_file: cloud.writeCloudsFile('nowhere.yaml', entry) }, ofOffer);
        },
      });
      return {
        ...context,
        volumeSpec: (ref) => ({ ...context.volumeSpec(ref), sizeGb: 1 }),
        // Nova accepts a create, and looks for a host afterwards.
        units: undefined,
        impossible: { image_missing: { image: 'no-such-image' } },
      };
    },
    teardown: ({ driver }) => removeAll(driver),
    timeoutMs: 900_000,
  });
});

describe('what happens behind the back of the driver', () => {
  const REF = 'berth-inst-0123456789abcdef0123456789abcdef';
  let driver: PlatformDriver;
  let server: Answer;
  const power = async (): Promise<string> => {
    const found: Presence<ObservedMachine> = await driver.get(REF);
    return found.answer === 'observed' ? found.value.power : found.answer;
  };

  /** Works with one machine of the driver, and removes what is left. */
  async function withMachine(work: () => Promise<void>): Promise<void> {
    driver = await open();
    await done((cookie) => driver.create(specOf(REF, machine), cookie));
    // The administrator sees its host.
    const { servers } = await cloud.admin.send('nova-api', 'GET', `/servers/detail?name=${REF}`);
    [server] = servers;
    await work();
    await removeAll(driver);
  }

  it('a machine that was renamed is the same one, and goes by its own order', () =>
    withMachine(async () => {
      await cloud.operator.rename(server.id, 'renamed');
      expect(await driver.get(REF)).toMatchObject({
        answer: 'observed',
        value: { power: 'running', renamedTo: 'renamed' },
      });
    }));

  it('a rebuild, a rescue and a pause are followed', () =>
    withMachine(async () => {
      const imageRef = await cloud.idOf('images', image.name);
      await cloud.operator.rebuild(server.id, imageRef);
      expect(await power()).toBe('running');
      await cloud.operator.rescue(server.id);
      expect(await power()).not.toBe('gone');
      await cloud.operator.unrescue(server.id);
      expect(await power()).toBe('running');
      await cloud.operator.pause(server.id);
      expect(await power()).toBe('paused');
    }));

  it('a machine that was deleted is gone, and its port is a leftover that goes with its order', () =>
    withMachine(async () => {
      await cloud.operator.remove(server.id);
      expect(await power()).toBe('gone');
      expect(await driver.list()).toMatchObject({ answer: 'listed', items: [], leftovers: [{ ref: REF }] });
      await done((cookie) => driver.destroy(REF, cookie, anOrder));
    }));

  it('tokens that expired are replaced, and an API that was killed is unknown until it answers again', () =>
    withMachine(async () => {
      await cloud.expireTokens();
      expect(await power()).toBe('running');
      await cloud.kill('nova-api');
      expect(await power()).toBe('unknown');
      expect(await driver.list()).toMatchObject({ answer: 'unknown' });
      await cloud.restart('nova-api');
      expect(await power()).toBe('running');
    }));

  it('a machine whose host was killed is listed all the time, and runs when the host is back', () =>
    withMachine(async () => {
      await cloud.killCompute('cn1');
      await cloud.shown('cn1', 'down');
      expect(['gone', 'unknown']).not.toContain(await power());
      expect(await driver.list()).toMatchObject({ answer: 'listed', items: [{ ref: REF }] });
      await cloud.startCompute('cn1');
      expect(await power()).toBe('running');
    }));

  it('a locked machine is neither stopped nor removed, and the failure names the lock', () =>
    withMachine(async () => {
      const lock = (action: string) =>
        cloud.admin.send('nova-api', 'POST', `/servers/${server.id}/action`, { [action]: null });
      await lock('lock');
      const remedy = `openstack server unlock ${server.id}`;
      await expect(done((cookie) => driver.stop(REF, cookie))).rejects.toThrow(remedy);
      await expect(done((cookie) => driver.destroy(REF, cookie, anOrder))).rejects.toThrow(remedy);
      await lock('unlock');
    }));

  it('a create while no host is up fails with capacity', () =>
    withMachine(async () => {
      await cloud.killCompute('cn1');
      await cloud.shown('cn1', 'down');
      const other = `${REF.slice(0, -1)}0`;
      const made = done((cookie) => driver.create(specOf(other, machine), cookie));
      await expect(made).rejects.toThrow('"code":"capacity"');
      await cloud.startCompute('cn1');
    }));

  it('a snapshot of a volume holds its removal, and the failure names it', async () => {
    const { volumes } = await open();
    const { own } = cloud;
    const ref = 'berth-vol-0123456789abcdef0123456789abcdef';
    const spec = { ref, datacenter: 'fra', sizeGb: 1, type: undefined, note: '{}' };
    await done((cookie) => volumes?.create(spec, cookie) ?? Promise.reject());
    const [{ id: volume_id }] = (await own.send('cinder-api', 'GET', `/volumes?name=${ref}`)).volumes;
    const body = { snapshot: { volume_id, name: 'nightly' } };
    const { snapshot } = await own.send('cinder-api', 'POST', '/snapshots', body);
    const path = `/snapshots/${snapshot.id}`;
    const status = async () => (await own.send('cinder-api', 'GET', path)).snapshot.status;
    await expect.poll(status).toBe('available');
    const remove = () => done((cookie) => volumes?.destroy(ref, cookie, anOrder) ?? Promise.reject());
    await expect(remove()).rejects.toThrow('nightly');
    await own.send('cinder-api', 'DELETE', path);
    await expect.poll(() => cloud.contents()).toEqual([expect.stringMatching(/^volume /)]);
    await remove();
    expect(await cloud.contents()).toEqual([]);
  });

  it('a full quota for the writer’s mark is reported as such, and other failures are not', async () => {
    const { writer } = await open();
    await cloud.own.logIn();
    const path = `/quotas/${cloud.own.project}`;
    await cloud.admin.send('neutron', 'PUT', path, { quota: { security_group: 0 } });
    await expect(writer?.write('lab', 'mark')).rejects.toBeInstanceOf(NoRoomForMark);
    await cloud.admin.send('neutron', 'DELETE', path);
    await writer?.write('lab', 'mark');
    expect(await writer?.read('lab')).toEqual(['mark']);
    await writer?.write('lab', '');
  });

  it('a machine that was migrated is the same one', async () => {
    await cloud.operator.moveHost('cn2', 'az1');
    await withMachine(async () => {
      await cloud.operator.migrate(server.id);
      const { 'OS-EXT-SRV-ATTR:host': host } = await cloud.operator.server(server.id);
      expect(host).not.toBe(server['OS-EXT-SRV-ATTR:host']);
      expect(await power()).toBe('running');
    });
    await cloud.operator.moveHost('cn2', 'az2');
  });
});
