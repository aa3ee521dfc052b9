import { describe, expect, it } from 'vitest';
import type { CloudParts } from './cloud.ts';
import {
  ADMIN,
  clientOf,
  MEMBER,
  type MemoryCloud,
  memoryCloud,
  OTHER,
  TOKEN_MS,
  URLS,
} from './memory-cloud.fixture.ts';

const { nova, neutron, glance, cinder, placement, keystone } = URLS;
const MINUTE = 60_000;

interface Shown {
  id: string;
  name: string;
  status: string;
  'OS-EXT-STS:task_state': string | null;
  'OS-EXT-STS:vm_state': string;
  addresses: Record<string, { addr: string; 'OS-EXT-IPS:type': string }[]>;
  fault?: { message: string };
  host_status?: string;
  metadata: Record<string, string>;
}

async function setUp(parts: Partial<CloudParts> = {}, as = ADMIN) {
  const memory = memoryCloud(parts);
  const { cloud } = memory;
  const { ask, send, token } = await clientOf(memory, as);
  const flavor = [...cloud.flavors.values()][0]?.id;
  const image = [...cloud.images.values()][0]?.id;
  const network = cloud.networks[0]?.id;
  const create = async (more: object = {}): Promise<string> => {
    const server = { name: 'one', flavorRef: flavor, imageRef: image, networks: 'none', ...more };
    const { body, status, text } = await ask('POST', `${nova}/servers`, { server });
    expect(status, text).toBe(202);
    return (body as { server: { id: string } }).server.id;
  };
  const show = async (id: string): Promise<Shown> =>
    ((await ask('GET', `${nova}/servers/${id}`)).body as { server: Shown }).server;
  const act = (id: string, name: string, args: object | null = null) =>
    ask('POST', `${nova}/servers/${id}/action`, { [name]: args });
  const names = async (): Promise<string[]> =>
    ((await ask('GET', `${nova}/servers`)).body as { servers: { name: string }[] }).servers.map(
      ({ name }) => name,
    );
  const volume = async (size = 5): Promise<string> => {
    const { body } = await ask('POST', `${cinder}/volumes`, { volume: { name: 'v', size } });
    await memory.wait(MINUTE);
    return (body as { volume: { id: string } }).volume.id;
  };
  const statusOf = async (id: string): Promise<string> =>
    ((await ask('GET', `${cinder}/volumes/${id}`)).body as { volume: { status: string } }).volume.status;
  return { ...memory, ask, send, token, create, show, act, names, volume, statusOf, flavor, image, network };
}

/** Each state that a server is shown in until nothing changes. */
async function course(
  { wait }: Pick<MemoryCloud, 'wait'>,
  look: () => Promise<Shown | undefined>,
): Promise<string[]> {
  const seen: string[] = [];
  for (let step = 0; step < 1_200; step++) {
    const server = await look();
    const state =
      server === undefined ? 'gone' : `${server.status} ${server['OS-EXT-STS:task_state'] ?? ''}`.trim();
    if (seen.at(-1) !== state) seen.push(state);
    await wait(50);
  }
  return seen;
}

describe('servers', () => {
  it('are built in steps', async () => {
    const setting = await setUp();
    const id = await setting.create({ networks: [{ uuid: setting.network }] });
    expect(await course(setting, () => setting.show(id))).toEqual([
      'BUILD scheduling',
      'BUILD networking',
      'BUILD block_device_mapping',
      'BUILD spawning',
      'ACTIVE',
    ]);
    expect((await setting.show(id)).addresses).toEqual({
      tenants: [expect.objectContaining({ addr: '10.0.0.10' })],
    });
  });

  it.each([
    ['os-stop', ['ACTIVE powering-off', 'SHUTOFF']],
    ['pause', ['ACTIVE pausing', 'PAUSED']],
    ['suspend', ['ACTIVE suspending', 'SUSPENDED']],
    ['rescue', ['ACTIVE rescuing', 'RESCUE']],
    [
      'shelve',
      [
        'ACTIVE shelving',
        'ACTIVE shelving_image_uploading',
        'SHELVED shelving_offloading',
        'SHELVED_OFFLOADED',
      ],
    ],
    ['migrate', ['RESIZE resize_prep', 'RESIZE resize_migrating', 'RESIZE resize_finish', 'VERIFY_RESIZE']],
    ['os-migrateLive', ['MIGRATING migrating', 'ACTIVE']],
  ])('%s takes them through their states', async (action, states) => {
    const setting = await setUp();
    const id = await setting.create();
    await setting.wait(5 * MINUTE);
    expect((await setting.act(id, action)).status).toBe(202);
    expect(await course(setting, () => setting.show(id))).toEqual(states);
  });

  it('reboots hard, and rebuilds', async () => {
    const setting = await setUp();
    const id = await setting.create();
    await setting.wait(5 * MINUTE);
    await setting.act(id, 'reboot', { type: 'HARD' });
    expect(await course(setting, () => setting.show(id))).toEqual([
      'HARD_REBOOT rebooting_hard',
      'HARD_REBOOT reboot_started_hard',
      'ACTIVE',
    ]);
    await setting.act(id, 'rebuild', { imageRef: setting.image });
    expect(await course(setting, () => setting.show(id))).toEqual([
      'REBUILD rebuilding',
      'REBUILD rebuild_spawning',
      'ACTIVE',
    ]);
  });

  it('refuse an action in another state, and while something is done', async () => {
    const { create, act, wait } = await setUp();
    const id = await create();
    expect((await act(id, 'os-stop')).body).toEqual({
      conflictingRequest: {
        code: 409,
        message: `Cannot 'stop' instance ${id} while it is in vm_state building`,
      },
    });
    await wait(5 * MINUTE);
    await act(id, 'os-stop');
    expect((await act(id, 'pause')).text).toContain('while it is in task_state powering-off');
  });

  it('a second POST with the same name makes a second server', async () => {
    const { create, names } = await setUp();
    const [one, two] = [await create({ name: 'same' }), await create({ name: 'same' })];
    expect(one).not.toBe(two);
    expect(await names()).toEqual(['same', 'same']);
  });

  it('a build that no host can take ends in ERROR with its fault, and is deleted at once', async () => {
    const setting = await setUp({ inventories: { MEMORY_MB: 1_024 } });
    const id = await setting.create();
    expect(await course(setting, () => setting.show(id))).toEqual(['BUILD scheduling', 'ERROR']);
    expect((await setting.show(id)).fault?.message).toMatch(/^No valid host was found/);
    expect((await setting.ask('DELETE', `${nova}/servers/${id}`)).status).toBe(204);
    expect((await setting.ask('GET', `${nova}/servers/${id}`)).status).toBe(404);
  });

  it('an unshelve that no host can take leaves SHELVED_OFFLOADED without a fault', async () => {
    const setting = await setUp();
    const id = await setting.create();
    await setting.wait(5 * MINUTE);
    await setting.act(id, 'shelve');
    await setting.wait(10 * MINUTE);
    for (const compute of setting.cloud.computes) compute.isDisabled = true;
    expect((await setting.act(id, 'unshelve')).status).toBe(202);
    expect(await course(setting, () => setting.show(id))).toEqual([
      'SHELVED_OFFLOADED unshelving',
      'SHELVED_OFFLOADED',
    ]);
    expect((await setting.show(id)).fault).toBeUndefined();
    for (const compute of setting.cloud.computes) compute.isDisabled = false;
    await setting.act(id, 'unshelve');
    expect(await course(setting, () => setting.show(id))).toEqual([
      'SHELVED_OFFLOADED unshelving',
      'SHELVED_OFFLOADED spawning',
      'ACTIVE',
    ]);
  });

  it('a shelved server keeps its quota and its image, and gives back its room', async () => {
    const { create, act, ask, wait, cloud, names } = await setUp();
    const id = await create();
    await wait(5 * MINUTE);
    expect(cloud.allocations.size).toBe(1);
    await act(id, 'shelve');
    await wait(10 * MINUTE);
    expect(cloud.allocations.size).toBe(0);
    const { body } = await ask('GET', `${glance}/images?instance_uuid=${id}`);
    expect(body).toMatchObject({
      images: [{ name: 'one-shelved', status: 'active', image_type: 'snapshot' }],
    });
    expect((await ask('GET', `${nova}/limits`)).body).toMatchObject({
      limits: { absolute: { totalInstancesUsed: 1 } },
    });
    await ask('DELETE', `${nova}/servers/${id}`);
    expect(await names()).toEqual([]);
    expect((await ask('GET', `${glance}/images?instance_uuid=${id}`)).body).toMatchObject({ images: [] });
  });

  it('are shown deleting until they are gone', async () => {
    const setting = await setUp();
    const id = await setting.create();
    await setting.wait(5 * MINUTE);
    await setting.ask('DELETE', `${nova}/servers/${id}`);
    const look = async () => (setting.cloud.servers.has(id) ? setting.show(id) : undefined);
    expect(await course(setting, look)).toEqual(['ACTIVE deleting', 'gone']);
  });

  it('are SOFT_DELETED where the cloud reclaims: in no listing, and restored or deleted later', async () => {
    const { create, act, ask, show, names, wait } = await setUp({ reclaimMs: 20 * MINUTE }, MEMBER);
    const [one, two] = [await create({ name: 'one' }), await create({ name: 'two' })];
    await wait(5 * MINUTE);
    for (const id of [one, two]) await ask('DELETE', `${nova}/servers/${id}`);
    await wait(MINUTE);
    expect(await names()).toEqual([]);
    expect((await show(one)).status).toBe('SOFT_DELETED');
    await act(one, 'restore');
    await wait(MINUTE);
    expect(await names()).toEqual(['one']);
    await wait(30 * MINUTE);
    expect((await ask('GET', `${nova}/servers/${two}`)).status).toBe(404);
  });

  it('stay ACTIVE while their host is down; a DELETE then removes the record, and the disk stays until the host is back', async () => {
    const { create, ask, show, wait, cloud } = await setUp();
    const id = await create();
    await wait(5 * MINUTE);
    const host = cloud.servers.get(id)?.host;
    if (host === undefined) throw new Error('it has no host');
    host.isSilent = true;
    await wait(2 * MINUTE);
    expect(await show(id)).toMatchObject({ status: 'ACTIVE', host_status: 'UNKNOWN' });
    await ask('DELETE', `${nova}/servers/${id}`);
    expect((await ask('GET', `${nova}/servers/${id}`)).status).toBe(404);
    expect(cloud.leftBehind.size).toBe(1);
    host.isSilent = false;
    await wait(10 * MINUTE);
    expect(cloud.leftBehind.size).toBe(0);
  });

  it('a command to a host that is down waits for it', async () => {
    const { create, act, show, wait, cloud } = await setUp();
    const id = await create();
    await wait(5 * MINUTE);
    for (const compute of cloud.computes) compute.isSilent = true;
    expect((await act(id, 'os-stop')).status).toBe(202);
    await wait(10 * MINUTE);
    expect(await show(id)).toMatchObject({ status: 'ACTIVE', 'OS-EXT-STS:task_state': 'powering-off' });
    for (const compute of cloud.computes) compute.isSilent = false;
    await wait(2 * MINUTE);
    expect((await show(id)).status).toBe('SHUTOFF');
  });

  it('take metadata only in some states', async () => {
    const { create, ask, act, show, wait } = await setUp();
    const id = await create({ metadata: { a: '1' } });
    const put = (metadata: object) => ask('POST', `${nova}/servers/${id}/metadata`, { metadata });
    expect((await put({ b: '2' })).status).toBe(409);
    await wait(5 * MINUTE);
    expect((await put({ b: '2' })).status).toBe(200);
    expect((await ask('DELETE', `${nova}/servers/${id}/metadata/a`)).status).toBe(204);
    expect((await show(id)).metadata).toEqual({ b: '2' });
    expect((await put({ c: 'x'.repeat(256) })).status).toBe(400);
    await act(id, 'shelve');
    await wait(10 * MINUTE);
    expect((await put({ b: '3' })).status).toBe(409);
  });

  it('are refused over quota', async () => {
    const { cloud, create, ask, flavor, image } = await setUp();
    cloud.quota.instances = 1;
    await create();
    const server = { name: 'two', flavorRef: flavor, imageRef: image, networks: 'none' };
    const { status, text } = await ask('POST', `${nova}/servers`, { server });
    expect(status).toBe(403);
    expect(text).toContain('Quota exceeded for instances: Requested 1, but already used 1 of 1 instances');
  });
});

describe('listings', () => {
  it('come in pages, newest first, with a link to the next', async () => {
    const { create, ask } = await setUp();
    for (const name of ['one', 'two', 'three']) await create({ name });
    const first = (await ask('GET', `${nova}/servers/detail?limit=2`)).body as {
      servers: Shown[];
      servers_links: { rel: string; href: string }[];
    };
    expect(first.servers.map(({ name }) => name)).toEqual(['three', 'two']);
    expect(first.servers_links.map(({ rel }) => rel)).toEqual(['next']);
    const next = await ask('GET', first.servers_links[0]?.href ?? '');
    expect(next.body).toMatchObject({ servers: [{ name: 'one' }] });
    expect(next.body).not.toHaveProperty('servers_links');
    expect((await ask('GET', `${nova}/servers/detail?marker=nothing`)).status).toBe(400);
  });

  it('show the servers of a cell that is down in part, and to who pages or filters not at all', async () => {
    const { cloud, create, ask } = await setUp();
    const id = await create();
    cloud.isCellDown = true;
    const list = async (query: string) =>
      (await ask('GET', `${nova}/servers/detail${query}`)).body as { servers: Shown[] };
    expect((await list('')).servers).toEqual([
      { id, status: 'UNKNOWN', tenant_id: 'berth', created: expect.any(String), links: [] },
    ]);
    for (const query of ['?limit=500', '?tags=one', '?name=one'])
      expect((await list(query)).servers).toEqual([]);
    expect((await ask('GET', `${nova}/servers/${id}`)).body).toMatchObject({ server: { status: 'UNKNOWN' } });
    expect((await ask('DELETE', `${nova}/servers/${id}`)).status).toBe(500);
  });

  it('show a project only its own', async () => {
    const memory = await setUp();
    const id = await memory.create();
    const other = await clientOf(memory, OTHER);
    expect((await other.ask('GET', `${nova}/servers/detail`)).body).toEqual({ servers: [] });
    expect((await other.ask('GET', `${nova}/servers/${id}`)).status).toBe(404);
    expect((await other.ask('GET', `${cinder}/volumes`)).status).toBe(400);
  });
});

describe('Keystone', () => {
  it('issues tokens that expire, with a catalog by interface and region', async () => {
    const { ask, wait, ...memory } = await setUp();
    const { auth } = await clientOf(memory);
    expect(auth.status).toBe(201);
    expect(auth.body).toMatchObject({
      token: { project: { id: 'berth' }, expires_at: expect.stringMatching(/000Z$/) },
    });
    expect(auth.text).toContain(`"region":"RegionOne","region_id":"RegionOne","url":"${nova}"`);
    await wait(TOKEN_MS + 1);
    const refused = await ask('GET', `${nova}/servers`);
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toBe(`Keystone uri="${keystone}"`);
  });

  it('a revoked credential ends its tokens, and gets no other', async () => {
    const { identity, ask, ...memory } = await setUp();
    identity.revokeCredential(ADMIN.id);
    expect((await ask('GET', `${neutron}/ports`)).status).toBe(401);
    expect((await clientOf(memory)).auth.status).toBe(401);
  });
});

describe('versions', () => {
  it.each([
    [nova, 'servers', 'compute 2.99'],
    [cinder, 'volumes', 'volume 3.99'],
    [placement, 'resource_providers', 'placement 1.99'],
  ])('%s refuses a microversion out of its range', async (base, path, version) => {
    const { ask } = await setUp();
    expect(
      (await ask('GET', `${base}/${path}`, undefined, { headers: { 'OpenStack-API-Version': version } }))
        .status,
    ).toBe(406);
  });

  it('Nova says its range to anyone', async () => {
    const { send } = await setUp();
    expect((await send('GET', `${nova}/`)).body).toMatchObject({
      version: { min_version: '2.1', version: '2.93' },
    });
  });

  it('only an administrator sees hosts and Placement', async () => {
    const setting = await setUp({}, MEMBER);
    const id = await setting.create();
    await setting.wait(5 * MINUTE);
    expect(await setting.show(id)).not.toHaveProperty('host_status');
    expect((await setting.ask('GET', `${placement}/resource_providers`)).status).toBe(403);
    expect((await setting.act(id, 'migrate')).status).toBe(403);
  });
});

describe('volumes', () => {
  it('outlive the servers that they are attached to', async () => {
    const { create, volume, ask, wait, statusOf } = await setUp();
    const [server, id] = [await create(), await volume()];
    await wait(5 * MINUTE);
    await ask('POST', `${nova}/servers/${server}/os-volume_attachments`, {
      volumeAttachment: { volumeId: id },
    });
    expect(await statusOf(id)).toBe('reserved');
    expect((await ask('DELETE', `${cinder}/volumes/${id}`)).status).toBe(400);
    await wait(2 * MINUTE);
    expect(await statusOf(id)).toBe('in-use');
    await ask('DELETE', `${nova}/servers/${server}`);
    await wait(5 * MINUTE);
    expect(await statusOf(id)).toBe('available');
  });

  it('of an offloaded server are reserved, and Cinder shows no attachment', async () => {
    const { create, volume, act, ask, wait, statusOf } = await setUp();
    const [server, id] = [await create(), await volume()];
    await wait(5 * MINUTE);
    const attachments = `${nova}/servers/${server}/os-volume_attachments`;
    await ask('POST', attachments, { volumeAttachment: { volumeId: id } });
    await wait(2 * MINUTE);
    await act(server, 'shelve');
    await wait(10 * MINUTE);
    expect(await statusOf(id)).toBe('reserved');
    expect((await ask('GET', `${cinder}/volumes/${id}`)).body).toMatchObject({ volume: { attachments: [] } });
    expect((await ask('GET', attachments)).body).toMatchObject({ volumeAttachments: [{ volumeId: id }] });
    expect((await ask('DELETE', `${attachments}/${id}`)).status).toBe(202);
    expect(await statusOf(id)).toBe('available');
  });

  it('grow, and never shrink', async () => {
    const { volume, ask, wait, statusOf } = await setUp();
    const id = await volume(5);
    const extend = (size: number) =>
      ask('POST', `${cinder}/volumes/${id}/action`, { 'os-extend': { new_size: size } });
    expect((await extend(5)).status).toBe(400);
    expect((await extend(6)).status).toBe(202);
    expect(await statusOf(id)).toBe('extending');
    await wait(MINUTE);
    expect(await statusOf(id)).toBe('available');
  });

  it('that a server boots from may stay when it is deleted', async () => {
    const { create, ask, wait, cloud, image } = await setUp();
    const boot = {
      source_type: 'image',
      destination_type: 'volume',
      uuid: image,
      boot_index: 0,
      volume_size: 10,
    };
    const id = await create({ imageRef: '', block_device_mapping_v2: [boot] });
    await wait(10 * MINUTE);
    expect([...cloud.volumes.values()]).toMatchObject([{ status: 'in-use', name: '', size: 10 }]);
    expect(cloud.allocations.get(id)?.resources).not.toHaveProperty('DISK_GB');
    await ask('DELETE', `${nova}/servers/${id}`);
    await wait(5 * MINUTE);
    expect([...cloud.volumes.values()]).toMatchObject([{ status: 'available' }]);
  });
});

describe('ports', () => {
  it('that were made beforehand outlive their server, unbound; those that Nova made do not', async () => {
    const { ask, create, wait, network, cloud } = await setUp();
    const made = (await ask('POST', `${neutron}/ports`, { port: { network_id: network, name: 'mine' } }))
      .body as { port: { id: string } };
    const id = await create({ networks: [{ port: made.port.id }, { uuid: network }] });
    await wait(5 * MINUTE);
    expect(cloud.ports.size).toBe(2);
    expect((await ask('GET', `${neutron}/ports?device_id=${id}&name=mine`)).body).toMatchObject({
      ports: [{ status: 'ACTIVE' }],
    });
    const second = {
      name: 'two',
      flavorRef: [...cloud.flavors.keys()][0],
      imageRef: [...cloud.images.keys()][0],
    };
    const busy = await ask('POST', `${nova}/servers`, {
      server: { ...second, networks: [{ port: made.port.id }] },
    });
    expect(busy.status).toBe(409);
    await ask('DELETE', `${nova}/servers/${id}`);
    await wait(5 * MINUTE);
    expect((await ask('GET', `${neutron}/ports`)).body).toMatchObject({
      ports: [{ name: 'mine', device_id: '', status: 'DOWN' }],
    });
  });

  it('leave their floating IP behind', async () => {
    const { ask, network, cloud } = await setUp();
    const { port } = (await ask('POST', `${neutron}/ports`, { port: { network_id: network } })).body as {
      port: { id: string };
    };
    const floatingip = { floating_network_id: cloud.networks[1]?.id, port_id: port.id };
    await ask('POST', `${neutron}/floatingips`, { floatingip });
    const again = await ask('POST', `${neutron}/floatingips`, { floatingip });
    expect(again.body).toMatchObject({ NeutronError: { type: 'FloatingIPPortAlreadyAssociated' } });
    await ask('DELETE', `${neutron}/ports/${port.id}`);
    expect((await ask('GET', `${neutron}/floatingips`)).body).toMatchObject({
      floatingips: [{ port_id: null, status: 'DOWN' }],
    });
  });
});

it('Placement shows the hosts with room in a zone', async () => {
  const { ask, create, wait } = await setUp({ zones: ['az1', 'az2'], inventories: { VGPU: 1 } });
  await create({ availability_zone: 'az1' });
  await wait(5 * MINUTE);
  const { aggregates } = (await ask('GET', `${nova}/os-aggregates`)).body as {
    aggregates: { uuid: string; name: string }[];
  };
  const az1 = aggregates.find(({ name }) => name === 'az1')?.uuid;
  const candidates = async (query: string) => {
    const { body } = await ask('GET', `${placement}/allocation_candidates?${query}`);
    return Object.values((body as { provider_summaries: object }).provider_summaries);
  };
  expect(await candidates('resources=VCPU:2,VGPU:1')).toHaveLength(2);
  expect(await candidates('resources=VGPU:2')).toHaveLength(0);
  expect(await candidates(`resources=VCPU:2&member_of=${az1}`)).toMatchObject([
    { resources: { VCPU: { capacity: 128, used: 2 }, MEMORY_MB: { used: 2_048 } } },
  ]);
});
