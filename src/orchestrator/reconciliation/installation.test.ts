import { beforeEach, describe, expect, it } from 'vitest';
import { account, instance, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Store } from '../model/store.ts';
import { ensureInstallation, knownPlatforms, leftPlatforms, PlatformMismatch } from './installation.ts';

const here = { name: 'libvirt' };
const elsewhere = { name: 'openstack' };
const random = createSeededRandom('installation');
let store: Store;

beforeEach(async () => {
  store = await openTestStore();
  await store.transact((tx) => tx.credentials.insertAccount(account));
});

const start = (platform: { name: string }) =>
  ensureInstallation({ store, random }, new Map([['default', platform.name]]));

const inStatus = (status: InstanceRecord['status']) => instance('inst-1', { status, createOpenUntil: null });
const deleting = (deletedAt: number | null) =>
  volume('vol-1', { status: 'DELETING', createdAt: 0, deletedAt });

it('the installation is created at the first start and stays', async () => {
  const first = await start(here);
  expect(first).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{24}$/),
    platform: '{"default":{"driver":"libvirt"}}',
  });
  expect(await start(here)).toEqual(first);
  expect(await store.read.installation.get()).toEqual(first);
});

it('the installation is not moved to another platform while it has live instances or volumes', async () => {
  const first = await start(here);
  await store.transact((tx) => tx.instances.insert(inStatus('ERROR')));
  await expect(start(elsewhere)).rejects.toThrow(PlatformMismatch);
  await expect(start(elsewhere)).rejects.toThrow(
    /holds 1 instance and 0 volumes of the platform "libvirt", and the configuration names "openstack": configure/,
  );
  await store.transact((tx) => tx.instances.update(inStatus('DESTROYED')));
  await store.transact((tx) => tx.volumes.insert(deleting(null)));
  await expect(start(elsewhere)).rejects.toThrow(/holds 0 instances and 1 volume/);
  expect(await store.read.installation.get()).toEqual(first);
});

it('the installation keeps its id on another platform once the previous one is empty', async () => {
  const { id } = await start(here);
  await store.transact(async (tx) => {
    await tx.instances.insert(inStatus('DESTROYED'));
    await tx.volumes.insert(deleting(1));
  });
  expect(await start(elsewhere)).toEqual({ id, platform: '{"default":{"driver":"openstack"}}' });
});

describe('several platforms', () => {
  const named = (...names: string[]) =>
    ensureInstallation({ store, random }, new Map(names.map((name) => [name, `driver-of-${name}`])));
  const hold = (platform: string) =>
    store.transact((tx) => tx.instances.insert({ ...inStatus('ONLINE'), platform }));

  it('may come and go while nothing is on them', async () => {
    const { id } = await named('default', 'east');
    expect(await named('east', 'west')).toEqual({
      id,
      platform: JSON.stringify({ east: { driver: 'driver-of-east' }, west: { driver: 'driver-of-west' } }),
    });
    await hold('west');
    await named('west', 'north');
  });

  it('are refused if a platform with live rows is no longer configured [platform-removed]', async () => {
    await named('east', 'west');
    await hold('east');
    await expect(named('west')).rejects.toThrow(
      'The database holds 1 instance and 0 volumes of the platform "east" (such as inst-1), and the configuration has no platform of that name: add the platform that made them to `platforms:` as `east`, or delete them first.',
    );
  });

  it('are refused if one changes its driver; the only earlier platform counts as `default`', async () => {
    await start({ name: 'driver-of-default' });
    await hold('default');
    await named('default', 'east');
    await expect(start({ name: 'other' })).rejects.toThrow(/of the platform "driver-of-default"/);
    await expect(named('east')).rejects.toThrow(/of the platform "default" \(such as inst-1\)/);
  });

  const settled = (settings: Record<string, string>) =>
    ensureInstallation(
      { store, random },
      new Map(Object.keys(settings).map((name) => [name, 'libvirt'])),
      new Map(Object.entries(settings)),
    );

  it('are refused if one with rows takes over the settings of another [platforms-swapped]', async () => {
    await settled({ east: 'host: a', west: 'host: b' });
    await hold('west');
    await expect(settled({ east: 'host: b', west: 'host: a' })).rejects.toThrow(
      'The database holds 1 instance and 0 volumes of the platform "west" (such as inst-1), and the configuration now uses that name for the platform that was "east": all of them would look gone. Give each platform its previous name.',
    );
    await expect(settled({ west: 'host: a' })).rejects.toThrow(/the platform that was "east"/);
    await settled({ east: 'host: a', west: 'host: c' });
    await expect(settled({ east: 'host: c', west: 'host: d' })).resolves.toBeDefined();
  });

  it('keep the facts of a removed platform while it has ended rows [platform-left]', async () => {
    await named('east', 'west');
    await store.transact((tx) => tx.instances.insert({ ...inStatus('DESTROYED'), platform: 'east' }));
    const left = await named('west');
    expect(knownPlatforms(left)).toEqual(['west', 'east']);
    expect(await leftPlatforms(store.read, ['east'])).toEqual([
      { platform: 'east', instances: 1, volumes: 0 },
    ]);
    expect(await leftPlatforms(store.read, [])).toEqual([]);
  });

  it('are all compared with a restored database, including those not configured here', async () => {
    await named('east', 'west');
    await store.transact((tx) => tx.marks.put('restored_from', 5));
    expect(knownPlatforms(await named('west'))).toEqual(['west', 'east']);
  });
});
