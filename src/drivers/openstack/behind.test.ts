import { describe, expect, it } from 'vitest';
import {
  ADMIN,
  clientOf,
  MEMBER,
  OTHER,
  TOKEN_MS,
  URLS,
} from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import { NoRoomForMark } from '../../ports/errors.ts';
import { TRIAL_ORDER } from '../kit/checks/bench.ts';
import { ended, openstackInMemory, specOf, withMachine } from './driver.fixture.ts';
import { CloudRefusal } from './errors.ts';
import { openOpenStack } from './open.ts';

const MINUTE = 60_000;
const { nova, neutron, cinder } = URLS;

describe('what somebody does at the cloud', () => {
  it.each([
    ['stops it', [['os-stop']], 'stopped'],
    ['pauses it', [['pause']], 'paused'],
    ['suspends it', [['suspend']], 'paused'],
    ['shelves it', [['shelve']], 'stopped'],
    ['rescues it', [['rescue', {}]], 'starting'],
    ['migrates it, and has not confirmed that', [['migrate']], 'running'],
    ['migrates it', [['migrate'], ['confirmResize']], 'running'],
  ] as [string, [string, object?][], string][])(
    '%s: the machine is followed [openstack-followed]',
    async (_what, actions, power) => {
      const setting = await withMachine();
      for (const [name, args] of actions) {
        await setting.act(name, args ?? null);
        await setting.wait(3 * MINUTE);
      }
      expect(await setting.power()).toBe(power);
      const listed = await setting.driver.list();
      expect(listed).toMatchObject({ items: [{ ref: setting.ref, power }] });
    },
  );

  it('renames it: it is known by its mark, and removed by its id', async () => {
    const setting = await withMachine();
    await setting.ask('PUT', `${nova}/servers/${setting.id}`, { server: { name: 'db-of-the-shop' } });
    expect(await setting.driver.get(setting.ref)).toMatchObject({
      value: { power: 'running', renamedTo: 'db-of-the-shop' },
    });
    const step = await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
    expect(step).toMatchObject({ outcome: 'done' });
    expect(setting.cloud.servers.size + setting.cloud.ports.size).toBe(0);
  });

  it('deletes it: it is gone, and its port and address are named as leftovers [openstack-leftovers]', async () => {
    const setting = await withMachine({ floating: true, bootsFromVolume: true });
    await setting.ask('DELETE', `${nova}/servers/${setting.id}`);
    await setting.wait(MINUTE);
    expect(await setting.power()).toBe('gone');
    const [port] = [...setting.cloud.ports.keys()];
    const listed = await setting.driver.list();
    expect(listed).toMatchObject({ items: [], leftovers: [{ ref: setting.ref }] });
    expect(JSON.stringify(listed)).toContain(`port ${port}, floating IP 203.0.113.`);
    expect(
      await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER)),
    ).toMatchObject({
      outcome: 'done',
    });
    const { ports, floatingIps, volumes } = setting.cloud;
    expect(ports.size + floatingIps.size + volumes.size).toBe(0);
  });

  it.each([
    ['once it is complete', {}],
    ['before its creation is complete', { berth_id: undefined }],
  ])(
    'makes another server with its metadata, %s: it is a copy, and no order touches it [openstack-copy]',
    async (_when, change) => {
      const setting = await withMachine();
      const { metadata } = setting.cloud.servers.get(setting.id) as { metadata: Record<string, string> };
      const [flavor, image] = [[...setting.cloud.flavors.keys()][0], [...setting.cloud.images.keys()][0]];
      const server = {
        name: 'copy',
        flavorRef: flavor,
        imageRef: image,
        networks: 'none',
        metadata: { ...metadata, ...change },
      };
      await setting.ask('POST', `${nova}/servers`, { server });
      await setting.wait(MINUTE);
      const listed = await setting.driver.list();
      expect(listed).toMatchObject({ items: [{ ref: setting.ref }], copies: [{ ref: setting.ref }] });
      await setting.act('forceDelete');
      await setting.wait(MINUTE);
      expect(await setting.power()).toBe('gone');
      expect(await setting.driver.list()).toMatchObject({ items: [], copies: [{ ref: setting.ref }] });
      await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
      expect([...setting.cloud.servers.values()].map(({ name }) => name)).toEqual(['copy']);
    },
  );

  it('removes its mark but not its tag: nothing is concluded, and an order removes nothing', async () => {
    const setting = await withMachine({ floating: true });
    await setting.ask('PUT', `${nova}/servers/${setting.id}/metadata`, { metadata: {} });
    expect(await setting.power()).toBe('unknown');
    const { cloud } = setting;
    const all = () => cloud.servers.size + cloud.ports.size + cloud.floatingIps.size;
    const before = all();
    const order = setting.driver.destroy(setting.ref, null, TRIAL_ORDER);
    await expect(order).rejects.toThrow(`openstack server set --property berth_ref=${setting.ref}`);
    expect(all()).toBe(before);
  });

  it('restores a backup of its boot volume: the copy has the same metadata, and no order touches it [openstack-boot-backup]', async () => {
    const setting = await withMachine({ bootsFromVolume: true });
    const [boot] = setting.cloud.volumes.values();
    const { name, metadata } = boot as { name: string; metadata: object };
    await setting.ask('POST', `${cinder}/volumes`, { volume: { name, metadata, size: 20 } });
    await setting.wait(MINUTE);
    await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
    expect([...setting.cloud.volumes.keys()]).toHaveLength(1);
    expect(setting.cloud.volumes.has(boot?.id ?? '')).toBe(false);
  });

  it('takes a snapshot of its boot volume: the removal names it, and goes on without it [openstack-foreign-snapshot]', async () => {
    let snapshots: object[] = [{ id: 's-1', name: 'before-upgrade' }];
    const setting = await withMachine({
      bootsFromVolume: true,
      transport: (own) => ({
        ...own,
        async send(sent) {
          if (sent.url.includes('/snapshots'))
            return { status: 200, headers: {}, text: JSON.stringify({ snapshots }) };
          if (sent.method !== 'DELETE' || !/volumes\/[^/]+$/.test(sent.url) || snapshots.length === 0)
            return own.send(sent);
          const message =
            'Invalid volume: Volume status must be available or error and must not have snapshots.';
          return { status: 400, headers: {}, text: JSON.stringify({ badRequest: { code: 400, message } }) };
        },
      }),
    });
    const remove = () => ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
    const detail = expect.stringMatching(/snapshots hold the volume \S+: before-upgrade\. .*snapshot delete/);
    expect(await remove()).toMatchObject({ outcome: 'failed', code: 'conflict', detail });
    snapshots = [];
    expect(await remove()).toMatchObject({ outcome: 'done' });
    expect(setting.cloud.volumes.size).toBe(0);
  });

  it('renames its port and its boot volume: it is shown until they are gone', async () => {
    const setting = await withMachine({ bootsFromVolume: true });
    const [port] = setting.cloud.ports.values();
    if (port !== undefined) port.name = 'renamed';
    await setting.driver.destroy(setting.ref, null, TRIAL_ORDER);
    await setting.wait(MINUTE);
    expect(setting.cloud.servers.size).toBe(0);
    expect(await setting.power()).toBe('destroying');
    await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
    expect(setting.cloud.ports.size + setting.cloud.volumes.size).toBe(0);
  });

  it('takes floating IPs out of the configuration: that of a machine from before goes with it', async () => {
    const setting = await withMachine({ floating: true });
    const { floating_network: _, ...options } = setting.options;
    const later = openOpenStack(options, setting.connection, {
      catalog: setting.catalog,
      clock: { now: setting.connection.now } as never,
    });
    await ended(setting, (cookie) => later.destroy(setting.ref, cookie, TRIAL_ORDER));
    expect(setting.cloud.floatingIps.size).toBe(0);
  });

  it('takes its port away: it runs, but cannot be reached', async () => {
    const setting = await withMachine();
    for (const id of setting.cloud.ports.keys()) await setting.ask('DELETE', `${neutron}/ports/${id}`);
    expect(await setting.power()).toBe('starting');
  });
});

describe('a request that Nova accepts and does not carry out', () => {
  /** A driver with a machine on a cloud whose hosts fail at all they do from now on. */
  async function onFailingHosts(onStop: 'hold' | 'release' = 'hold') {
    const setting = await withMachine({ onStop });
    Object.assign(setting.cloud, { fails: (rate?: number) => rate === undefined });
    return setting;
  }

  it('is a failure with the reason of the host, and is sent again: a delete [openstack-delete-failed]', async () => {
    const setting = await onFailingHosts();
    const { driver, ref } = setting;
    const remove = () => ended(setting, (cookie) => driver.destroy(ref, cookie, TRIAL_ORDER));
    const detail = expect.stringMatching(/delete of the server \S+ .*: Failed to terminate process$/);
    expect(await remove()).toMatchObject({ outcome: 'failed', code: 'internal', detail });
    Object.assign(setting.cloud, { fails: () => false });
    expect(await remove()).toMatchObject({ outcome: 'done' });
  });

  it('is a failure, and is sent again: a stop that shelves [openstack-shelve-failed]', async () => {
    const setting = await onFailingHosts('release');
    const { driver, ref } = setting;
    const stop = () => ended(setting, (cookie) => driver.stop(ref, cookie));
    const detail = expect.stringMatching(/shelve of the server \S+ .*: Nova shows ACTIVE$/);
    expect(await stop()).toMatchObject({ outcome: 'failed', code: 'internal', detail });
    Object.assign(setting.cloud, { fails: () => false });
    expect(await stop()).toMatchObject({ outcome: 'done' });
  });
});

describe('a machine that an administrator has locked', () => {
  it.each(['stop', 'start', 'destroy'] as const)(
    'is not changed, and the failure names the lock: %s [openstack-locked]',
    async (what) => {
      const setting = await withMachine({ as: MEMBER });
      const { driver, ref } = setting;
      if (what === 'start') await ended(setting, (cookie) => driver.stop(ref, cookie));
      const admin = await clientOf(setting, ADMIN);
      const lock = (action: string) =>
        admin.ask('POST', `${nova}/servers/${setting.id}/action`, { [action]: null });
      const act = () =>
        ended<unknown>(setting, (cookie) =>
          what === 'destroy' ? driver.destroy(ref, cookie, TRIAL_ORDER) : driver[what](ref, cookie),
        );
      await lock('lock');
      const detail = expect.stringContaining(`openstack server unlock ${setting.id}`);
      expect(await act()).toMatchObject({ outcome: 'failed', code: 'conflict', detail });
      await lock('unlock');
      expect(await act()).toMatchObject({ outcome: 'done' });
    },
  );
});

describe('a cloud that keeps deleted servers for a while', () => {
  it('shows one as stopping until it is reaped, and running once it is restored [openstack-restored]', async () => {
    const setting = await withMachine({ cloud: { reclaimMs: 60 * MINUTE } });
    await setting.ask('DELETE', `${nova}/servers/${setting.id}`);
    await setting.wait(MINUTE);
    expect(await setting.power()).toBe('stopping');
    expect(await setting.driver.list()).toMatchObject({ items: [{ power: 'stopping' }] });
    await setting.act('restore');
    await setting.wait(MINUTE);
    expect(await setting.power()).toBe('running');
    await setting.ask('DELETE', `${nova}/servers/${setting.id}`);
    await setting.wait(3 * 60 * MINUTE);
    expect(await setting.power()).toBe('gone');
  });

  it('is asked to delete them for good by an order alone [openstack-soft-deleted]', async () => {
    const setting = await withMachine({ cloud: { reclaimMs: 60 * MINUTE } });
    expect(
      await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER)),
    ).toMatchObject({
      outcome: 'done',
    });
    expect(setting.cloud.servers.size).toBe(0);
  });
});

describe('a start of a shelved machine', () => {
  it('for which Nova finds no host leaves it shelved, with the code capacity [openstack-no-valid-host]', async () => {
    const setting = await withMachine({ onStop: 'release' });
    const { driver, ref } = setting;
    expect(await ended(setting, (cookie) => driver.stop(ref, cookie))).toMatchObject({ outcome: 'done' });
    for (const compute of setting.cloud.computes) compute.isDisabled = true;
    const step = await ended(setting, (cookie) => driver.start(ref, cookie));
    expect(step).toMatchObject({ outcome: 'failed', code: 'capacity', sideEffect: 'none' });
    expect(await setting.power()).toBe('stopped');
    for (const compute of setting.cloud.computes) compute.isDisabled = false;
    expect(await ended(setting, (cookie) => driver.start(ref, cookie))).toMatchObject({ outcome: 'done' });
  });
});

describe('a create', () => {
  it('for which Nova finds no host fails with capacity, and its order removes its parts', async () => {
    const setting = openstackInMemory();
    const driver = setting.open();
    const steps = ended(setting, (cookie) => driver.create(specOf('berth-inst-1'), cookie));
    for (const compute of setting.cloud.computes) compute.capacity['VCPU'] = 0;
    expect(await steps).toMatchObject({ outcome: 'failed', code: 'capacity', sideEffect: 'certain' });
    await ended(setting, (cookie) => driver.destroy('berth-inst-1', cookie, TRIAL_ORDER));
    expect(setting.cloud.servers.size + setting.cloud.ports.size).toBe(0);
  });

  it('whose server vanished after it was complete is not made once more under the same ref', async () => {
    const setting = await withMachine();
    await setting.ask('DELETE', `${nova}/servers/${setting.id}`);
    await setting.wait(MINUTE);
    expect(await setting.driver.create(specOf(setting.ref), null)).toMatchObject({
      outcome: 'failed',
      code: 'unfinished',
    });
    expect(setting.cloud.servers.size).toBe(0);
  });

  it('goes on where the ports were listed before the server was plugged in [openstack-early-ports]', async () => {
    let early = 0;
    const setting = openstackInMemory({
      transport: (own) => ({
        ...own,
        async send(sent) {
          const answer = await own.send(sent);
          if (early === 0 || sent.method !== 'GET' || !sent.url.includes('/ports')) return answer;
          early -= 1;
          return { ...answer, text: answer.text.replaceAll(/"device_id":"[^"]*"/g, '"device_id":""') };
        },
      }),
    });
    const driver = setting.open();
    const first = await driver.create(specOf('berth-inst-1'), null);
    if (first.outcome !== 'pending') throw new Error(JSON.stringify(first));
    await setting.wait(MINUTE);
    early = 1;
    expect(await driver.list()).toMatchObject({ items: [{ power: 'building' }], copies: [] });
    early = 1;
    expect(await driver.create(specOf('berth-inst-1'), first.cookie)).toMatchObject({ outcome: 'done' });
    expect(early).toBe(0);
  });

  it('whose request for a server arrives late asks for no second one [openstack-late-server]', async () => {
    let late: (() => Promise<unknown>) | undefined;
    const setting = openstackInMemory({
      transport: (own) => ({
        ...own,
        async send(sent) {
          if (late !== undefined || sent.method !== 'POST' || !sent.url.endsWith('/servers'))
            return own.send(sent);
          late = () => own.send(sent);
          throw new Error('the answer is lost');
        },
      }),
    });
    const driver = setting.open();
    await expect(driver.create(specOf('berth-inst-1'), null)).rejects.toThrow('lost');
    const again = await driver.create(specOf('berth-inst-1'), null);
    expect([again, setting.cloud.servers.size]).toEqual([expect.objectContaining({ outcome: 'pending' }), 0]);
    await late?.();
    const made = await ended(setting, (cookie) => driver.create(specOf('berth-inst-1'), cookie));
    expect([made, setting.cloud.servers.size]).toEqual([expect.objectContaining({ outcome: 'done' }), 1]);
  });

  it('that made two servers removes both, also the one whose port was unplugged by the other [openstack-unplugged]', async () => {
    const setting = await withMachine();
    const server = setting.cloud.servers.get(setting.id);
    const { berth_id: _, ...metadata } = server?.metadata ?? {};
    Object.assign(server ?? {}, { metadata });
    for (const port of setting.cloud.ports.values())
      Object.assign(port, {
        device_id: '',
        description: port.description.replace(/made \S+/, 'making asked'),
      });
    expect(await setting.driver.list()).toMatchObject({ items: [{ ref: setting.ref }], copies: [] });
    await ended(setting, (cookie) => setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER));
    expect(setting.cloud.servers.size + setting.cloud.ports.size).toBe(0);
  });

  it('completes a security group whose creation was interrupted', async () => {
    const setting = openstackInMemory();
    const group = { id: setting.cloud.id(), name: 'berth', project_id: 'berth', security_group_rules: [] };
    setting.cloud.groups.set(group.id, group);
    const driver = setting.open();
    await ended(setting, (cookie) => driver.create(specOf('berth-inst-1'), cookie));
    expect(setting.cloud.groups.get(group.id)?.security_group_rules).toContainEqual(
      expect.objectContaining({ direction: 'ingress', port_range_min: 22 }),
    );
  });

  it.each([
    ['db', true],
    ['a'.repeat(300), false],
  ])(
    'that got no further than its port says whose that is, if that fits [openstack-whose-port]',
    async (platform, fits) => {
      const setting = openstackInMemory();
      setting.cloud.quota.instances = 0;
      const driver = setting.open();
      const whose = { installation: 'i-1', platform, id: 'inst-1' };
      const spec = specOf('berth-inst-1', { note: JSON.stringify({ ...whose, name: 'db', sshKeys: [] }) });
      await ended(setting, (cookie) => driver.create(spec, cookie));
      const shown = async () => {
        const listed = await driver.list();
        if (listed.answer !== 'listed') throw new Error(listed.reason);
        return listed.items.map(({ power, note }) => [power, note && JSON.parse(note)]);
      };
      expect(await shown()).toEqual([['building', fits ? whose : undefined]]);
      await ended(setting, (cookie) => driver.destroy('berth-inst-1', cookie, TRIAL_ORDER));
      expect(await shown()).toEqual([]);
      expect(setting.cloud.ports.size).toBe(0);
    },
  );

  it('beyond the quota fails with quota, and is not counted as room', async () => {
    const setting = await withMachine();
    setting.cloud.quota.instances = 1;
    const step = await ended(setting, (cookie) => setting.driver.create(specOf('berth-inst-2'), cookie));
    expect(step).toMatchObject({ outcome: 'failed', code: 'quota', sideEffect: 'certain' });
    expect(await setting.driver.inventory?.()).toMatchObject({ free: [{ offerId: 'h100', units: 0 }] });
    expect(await setting.driver.place?.(specOf('berth-inst-2'), [])).toMatchObject({
      answer: 'refused',
      code: 'capacity',
    });
  });
});

it('a full quota for the writer’s mark is reported as such, and other refusals are not [openstack-writer-quota]', async () => {
  let message = "Quota exceeded for resources: ['security_group'].";
  const { open } = openstackInMemory({
    transport: (own) => ({
      ...own,
      async send(sent) {
        if (sent.method !== 'POST' || !sent.url.endsWith('/security-groups')) return own.send(sent);
        const text = JSON.stringify({ NeutronError: { type: 'OverQuota', message, detail: '' } });
        return { status: 409, headers: {}, text };
      },
    }),
  });
  const { writer } = open();
  await expect(writer?.write('a', 'mark')).rejects.toBeInstanceOf(NoRoomForMark);
  message = 'The security group is in use.';
  await expect(writer?.write('a', 'mark')).rejects.toBeInstanceOf(CloudRefusal);
});

describe('what strangers of the cloud made', () => {
  it('is not used by its name: no image, and no security group [openstack-strangers]', async () => {
    const setting = openstackInMemory();
    const driver = setting.open();
    const { cloud } = setting;
    const [own] = [...cloud.images.values()];
    cloud.image('ubuntu-24.04', { project_id: 'other', isPublic: false, createdAt: cloud.now + MINUTE });
    const group = { id: cloud.id(), name: 'berth', project_id: 'other', security_group_rules: [] };
    cloud.groups.set(group.id, group);
    const made = await ended(setting, (cookie) => driver.create(specOf('berth-inst-1'), cookie));
    expect(made).toMatchObject({ outcome: 'done' });
    expect([...cloud.servers.values()].map(({ image }) => image)).toEqual([own?.id]);
    expect([...cloud.ports.values()].flatMap(({ security_groups: groups }) => groups)).not.toContain(
      group.id,
    );
  });
});

it('a removal is shown until nothing of the machine is left [openstack-removal-shown]', async () => {
  const setting = await withMachine({ floating: true, bootsFromVolume: true });
  const shown: string[] = [];
  await ended(setting, async (cookie) => {
    const step = await setting.driver.destroy(setting.ref, cookie, TRIAL_ORDER);
    shown.push(await setting.power());
    return step;
  });
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.findIndex((power) => power !== 'destroying')).toBe(shown.indexOf('gone'));
  expect(shown.at(-1)).toBe('gone');
  expect(setting.cloud.ports.size).toBe(0);
});

describe('a credential', () => {
  it('gets a new token before the old one expires, and after it was revoked', async () => {
    const setting = await withMachine();
    await setting.wait(2 * TOKEN_MS);
    expect(await setting.power()).toBe('running');
    for (let issued = 1; issued < 9; issued += 1) setting.identity.revoke(`gAAAAA-${issued}`);
    expect(await setting.power()).toBe('running');
  });

  it('that was revoked proves nothing, and a change fails with auth [openstack-revoked]', async () => {
    const setting = await withMachine();
    setting.identity.setRevoked('berth', true);
    expect(await setting.driver.list()).toMatchObject({ answer: 'unknown' });
    expect(await setting.power()).toBe('unknown');
    const step = await setting.driver.stop(setting.ref, null);
    expect(step).toMatchObject({ outcome: 'failed', code: 'auth', sideEffect: 'none' });
    expect(JSON.stringify(step)).not.toContain('a secret');
  });

  it('of another project sees nothing, and names other hosts: no machine is proved gone [openstack-other-project]', async () => {
    const setting = await withMachine();
    const other = openstackInMemory({ as: OTHER });
    const [own, foreign] = [await setting.driver.get(setting.ref), await other.open().get(setting.ref)];
    const host = own.answer === 'observed' ? own.value.host : undefined;
    expect(foreign).toMatchObject({ answer: 'gone' });
    expect(host).toMatch(/^nova@[0-9a-f]{8}$/);
    expect(JSON.stringify(foreign)).not.toContain(host);
  });
});
