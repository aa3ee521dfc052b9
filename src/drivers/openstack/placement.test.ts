import { describe, expect, it } from 'vitest';
import { URLS } from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import type { Flavor } from './api.ts';
import { type Given, openstackInMemory, specOf } from './driver.fixture.ts';
import { resourceGroups } from './placement.ts';

const flavor: Flavor = { id: '1', name: 'gpu', vcpus: 8, ram: 4096, disk: 40, extra_specs: {} };
const groupsOf = (more: Partial<Flavor>, offer = {}) =>
  Object.fromEntries(resourceGroups({ ...flavor, ...more }, { flavor: 'gpu', images: {}, ...offer }));

// nova/scheduler/utils.py, ResourceRequest.
describe('what Placement is asked for a flavor', () => {
  it('is its size, without the root disk if it boots from a volume', () => {
    expect(groupsOf({})['']?.resources).toEqual({ VCPU: 8, MEMORY_MB: 4096, DISK_GB: 40 });
    expect(groupsOf({}, { boot_volume: {} })['']?.resources).toMatchObject({ DISK_GB: 0 });
  });

  it('is also its ephemeral disk and its swap', () => {
    const more = { 'OS-FLV-EXT-DATA:ephemeral': 10, swap: 1025 };
    expect(groupsOf(more)['']?.resources).toMatchObject({ DISK_GB: 52 });
  });

  it('is pinned CPUs where the flavor has dedicated ones', () => {
    const found = groupsOf({ extra_specs: { 'hw:cpu_policy': 'dedicated' } })['']?.resources;
    expect(found).toEqual({ PCPU: 8, MEMORY_MB: 4096, DISK_GB: 40 });
  });

  it('is what its extra specs name, by group', () => {
    const extra_specs = {
      'resources:VCPU': '0',
      'resources1:CUSTOM_GPU_H100': '2',
      'trait:CUSTOM_NVLINK': 'required',
      'trait1:CUSTOM_OLD': 'forbidden',
    };
    expect(groupsOf({ extra_specs })).toEqual({
      '': {
        resources: { VCPU: 0, MEMORY_MB: 4096, DISK_GB: 40 },
        required: ['!COMPUTE_STATUS_DISABLED', 'CUSTOM_NVLINK'],
      },
      1: { resources: { CUSTOM_GPU_H100: 2 }, required: ['!CUSTOM_OLD'] },
    });
  });
});

describe('the room for machines', () => {
  const withheld = (given: Given = {}) =>
    openstackInMemory({
      ...given,
      transport: (own) => ({
        ...own,
        send: async (sent) =>
          sent.url.startsWith(URLS.placement)
            ? { status: 403, headers: {}, text: '{"errors": [{"detail": "Policy does not allow it"}]}' }
            : own.send(sent),
      }),
    });

  it('is that of the quota where Placement does not answer this project [openstack-no-placement]', async () => {
    const setting = withheld();
    setting.cloud.quota.instances = 3;
    const found = await setting.open().inventory?.();
    expect(found).toMatchObject({ answer: 'counted', free: [{ offerId: 'h100', units: 3 }] });
  });

  it('is not counted where neither Placement nor a quota limits it', async () => {
    const setting = withheld();
    for (const name of Object.keys(setting.cloud.quota)) Object.assign(setting.cloud.quota, { [name]: -1 });
    expect(await setting.open().inventory?.()).toMatchObject({ answer: 'counted', free: [] });
  });

  it('counts the quota of volumes by the disk that is sold', async () => {
    const setting = openstackInMemory({ bootsFromVolume: true });
    setting.cloud.quota.gigabytes = 50;
    expect(await setting.open().inventory?.()).toMatchObject({
      free: [{ units: 2 }],
      limitedBy: ['quota of gigabytes of volumes'],
    });
  });

  it('is none in a zone that an operator cordoned, by its full name or by the name of the zone', async () => {
    const setting = openstackInMemory();
    const driver = setting.open();
    const all = await driver.inventory?.();
    if (all?.answer !== 'counted') throw new Error(JSON.stringify(all));
    const hosts = (all.hosts ?? []).map(({ host }) => host);
    for (const avoid of [hosts, hosts.map((host) => host.replace(/@.*/, ''))]) {
      expect(await driver.inventory?.(avoid)).toMatchObject({ free: [{ units: 0 }] });
      expect(await driver.place?.(specOf('berth-inst-1'), avoid)).toMatchObject({ code: 'capacity' });
    }
  });
});
