import { describe, expect, it } from 'vitest';
import { URLS } from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import { TRIAL_ORDER } from '../kit/checks/bench.ts';
import { ended, specOf, withMachine } from './driver.fixture.ts';

const MINUTE = 60_000;
const { nova, neutron, cinder } = URLS;

type Setting = Awaited<ReturnType<typeof withMachine>>;

async function withVolume(setting: Setting, ref = 'berth-vol-1') {
  const { volumes } = setting.driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  const spec = { ref, datacenter: 'fra', sizeGb: 5, type: undefined, note: 'a note' };
  const made = await ended(setting, (cookie) => volumes.create(spec, cookie));
  expect(made).toMatchObject({ outcome: 'done' });
  const step = (of: 'attach' | 'detach') => ended(setting, (cookie) => volumes[of](ref, setting.ref, cookie));
  return { volumes, ref, step };
}

// nova/api/openstack/compute/servers.py, _is_cell_down_supported: with `limit` or a filter the servers of a cell that is
// down are left out; without, they are UNKNOWN.
describe('a cell of Nova that is down', () => {
  it('proves no machine gone', async () => {
    const { cloud, driver, ref } = await withMachine();
    cloud.isCellDown = true;
    expect(await driver.get(ref)).toMatchObject({ answer: 'unknown' });
    expect(await driver.list()).toMatchObject({ answer: 'unknown' });
    cloud.isCellDown = false;
    expect(await driver.get(ref)).toMatchObject({ answer: 'observed' });
  });
});

// nova/compute/manager.py, _terminate_volume_connections: an offloaded server reserves its volumes, and Cinder lists only
// attachments that are attached. `os-volume_attachments` shows them.
describe('a volume of a shelved machine', () => {
  it('is still shown as attached', async () => {
    const setting = await withMachine({ onStop: 'release' });
    const { volumes, ref, step } = await withVolume(setting);
    expect(await step('attach')).toMatchObject({ outcome: 'done' });
    await ended(setting, (cookie) => setting.driver.stop(setting.ref, cookie));
    expect(await volumes.get(ref)).toMatchObject({ value: { attachedTo: [setting.ref] } });
  });

  it('is detached before the step is done', async () => {
    const setting = await withMachine({ onStop: 'release' });
    const { step } = await withVolume(setting);
    await step('attach');
    await ended(setting, (cookie) => setting.driver.stop(setting.ref, cookie));
    expect(await step('detach')).toMatchObject({ outcome: 'done' });
    expect(setting.cloud.servers.get(setting.id)?.mappings).toEqual([]);
  });
});

it('two first creates at once may make two security groups, and no create makes a third', async () => {
  const setting = await withMachine();
  const { cloud, ask, driver } = setting;
  await ask('POST', `${neutron}/security-groups`, { security_group: { name: 'berth' } });
  const groups = () => [...cloud.groups.values()].filter(({ name }) => name === 'berth');
  expect(groups()).toHaveLength(2);
  const second = await ended(setting, (cookie) => driver.create(specOf('berth-inst-2'), cookie));
  expect(second).toMatchObject({ outcome: 'done' });
  expect(groups()).toHaveLength(2);
});

// neutron/extensions/l3.py: without a service for routers, Neutron answers 404 for floating IPs.
it('a cloud without routers has no floating IPs, and its machines are seen', async () => {
  const setting = await withMachine({
    transport: (own) => ({
      ...own,
      send: async (sent) =>
        sent.url.includes('/floatingips')
          ? {
              status: 404,
              headers: {},
              text: '{"NeutronError": {"message": "The resource could not be found."}}',
            }
          : own.send(sent),
    }),
  });
  expect(await setting.power()).toBe('running');
  expect(await setting.driver.list()).toMatchObject({ items: [{ ref: setting.ref }] });
});

// cinder/backup/driver.py, put_metadata: what is restored gets the name and the metadata of its original.
it('a volume restored from a backup stays when the original is deleted [openstack-volume-backup]', async () => {
  const setting = await withMachine();
  const { volumes, ref } = await withVolume(setting);
  const [original] = setting.cloud.volumes.values();
  const { name, metadata } = original as { name: string; metadata: object };
  await setting.ask('POST', `${cinder}/volumes`, { volume: { name, metadata, size: 5 } });
  await setting.wait(MINUTE);
  expect(await volumes.list()).toMatchObject({ items: [{ ref }], leftovers: [], copies: [{ ref }] });
  const step = await ended(setting, (cookie) => volumes.destroy(ref, cookie, TRIAL_ORDER));
  expect(step).toMatchObject({ outcome: 'done' });
  expect([...setting.cloud.volumes.values()].map(({ name }) => name)).toEqual([ref]);
  expect(setting.cloud.volumes.has(original?.id ?? '')).toBe(false);
});

it('a volume without its metadata is unknown, not gone', async () => {
  const setting = await withMachine();
  const { volumes, ref } = await withVolume(setting);
  for (const volume of setting.cloud.volumes.values()) volume.metadata = {};
  expect(await volumes.get(ref)).toMatchObject({ answer: 'unknown' });
});

// glance/api/v2/images.py: an administrator is shown the images of all projects.
it('the image of another project with the same name stays [openstack-other-image]', async () => {
  const setting = await withMachine();
  const { driver, ref, cloud } = setting;
  const theirs = cloud.image(`${ref}-shelved`, { project_id: 'other', isPublic: false });
  await ended(setting, (cookie) => driver.destroy(ref, cookie, TRIAL_ORDER));
  expect(cloud.images.has(theirs.id)).toBe(true);
});

it('a volume is attached to the machine, not to a second server of a lost create', async () => {
  const setting = await withMachine();
  const { step } = await withVolume(setting);
  const server = {
    name: setting.ref,
    flavorRef: [...setting.cloud.flavors.keys()][0],
    imageRef: [...setting.cloud.images.keys()][0],
    networks: 'none',
    tags: [setting.ref],
    metadata: { berth_ref: setting.ref },
  };
  await setting.ask('POST', `${nova}/servers`, { server });
  await setting.wait(MINUTE);
  await step('attach');
  expect(setting.cloud.servers.get(setting.id)?.mappings).toHaveLength(1);
});

// cinder/volume/api.py, delete: `error_deleting` is not deletable; an administrator may force it or reset it.
it('a volume in error_deleting is not asked to be deleted in vain', async () => {
  const setting = await withMachine();
  const { volumes, ref } = await withVolume(setting);
  for (const volume of setting.cloud.volumes.values()) volume.status = 'error_deleting';
  const step = await ended(setting, (cookie) => volumes.destroy(ref, cookie, TRIAL_ORDER));
  expect(step).not.toMatchObject({ code: 'invalid' });
});

// cinder/volume/api.py, reserve and extend: `available` only. An administrator resets what failed.
it.each(['attach', 'resize'] as const)(
  'says how a volume whose extension failed takes another %s [openstack-stuck-volume]',
  async (of) => {
    const setting = await withMachine();
    const { volumes, ref, step } = await withVolume(setting);
    for (const volume of setting.cloud.volumes.values()) volume.status = 'error_extending';
    const refused = of === 'attach' ? await step(of) : await volumes.resize(ref, 9, null);
    const [id] = setting.cloud.volumes.keys();
    const detail = expect.stringContaining(
      `is error_extending: find the cause, then \`openstack volume set --state available ${id}\``,
    );
    expect(refused).toMatchObject({ outcome: 'failed', detail });
  },
);

// nova/compute/api.py, update_instance_metadata: ACTIVE, PAUSED, SUSPENDED and STOPPED only.
it('a shelved machine is disowned whole, or not at all', async () => {
  const setting = await withMachine({ onStop: 'release' });
  const { driver, ref, cloud } = setting;
  await ended(setting, (cookie) => driver.stop(ref, cookie));
  const step = await ended(setting, async (cookie) => (await driver.disown?.(ref, cookie)) as never);
  const isWhole = [...cloud.ports.values()].every(({ description }) => description.includes(ref));
  expect(step.outcome === 'done' || isWhole, JSON.stringify(step)).toBe(true);
});

it('the image of a machine that was renamed and shelved goes with it, also if cookies are lost', async () => {
  const setting = await withMachine({ onStop: 'release' });
  const { driver, ref, id, cloud } = setting;
  await setting.ask('PUT', `${nova}/servers/${id}`, { server: { name: 'db-of-the-shop' } });
  await ended(setting, (cookie) => driver.stop(ref, cookie));
  const snapshot = [...cloud.images.values()].find(({ server }) => server === id);
  if (snapshot === undefined) throw new Error('there is no snapshot');
  // Nova tries to delete it once: this one is what it leaves.
  const left = { ...snapshot, id: cloud.id() };
  cloud.images.set(left.id, left);
  await ended(setting, () => driver.destroy(ref, null, TRIAL_ORDER));
  expect([...cloud.images.keys()]).not.toContain(left.id);
});

// neutron 21: another call of the same order has removed the port since this one read it.
it.each(['PUT', 'DELETE'])('a port that is gone before the %s of a destroy is no failure', async (method) => {
  let removePort: ((id: string) => boolean) | undefined;
  const setting = await withMachine({
    transport: (own) => ({
      send: (sent) => {
        const [, id] = /\/ports\/([^/?]+)$/.exec(sent.url) ?? [];
        if (id !== undefined && sent.method === method) removePort?.(id);
        return own.send(sent);
      },
      close: () => own.close(),
    }),
  });
  removePort = (id) => setting.cloud.ports.delete(id);
  const step = await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
  expect(step).toMatchObject({ outcome: 'done' });
  expect(await setting.power()).toBe('gone');
});
