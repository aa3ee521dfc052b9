import { describe, expect, it } from 'vitest';
import { keys, setUp, smallRequest } from './reference.fixture.ts';

const firstOf = (pair: { public: string }) => pair.public.trim();

describe('an instance', () => {
  it('is PROVISIONING in the 201, then ONLINE with every injected key, then stopped and started with its disk', async () => {
    const { call, until, login } = setUp();
    const created = await call('POST', '/instances', { ...smallRequest, name: 'one' });
    expect(created).toMatchObject({
      status: 201,
      body: { status: 'PROVISIONING', name: 'one', configuration_id: 'cpu-small', region: 'eu-north' },
    });
    expect(created.body).not.toHaveProperty('public_ip');
    const path = `/instances/${created.body['id']}`;

    const { seen, body: online } = await until(path, 'ONLINE');
    expect(seen).toEqual(['PROVISIONING', 'ONLINE']);
    expect(online).toMatchObject({ public_ip: '127.0.0.1', ssh_username: 'ubuntu', price_per_hour: 0.02 });
    expect(online['port_forwards']).toEqual([{ internal_port: 22, external_port: online['ssh_port'] }]);
    expect(await login(online, 'echo kept > marker && sync')).toBe('0');
    expect(await login(online, 'cat ~/marker', keys.other)).toBe('0 kept');

    expect(await call('POST', `${path}/start`)).toMatchObject({ status: 409 });
    expect(await call('POST', `${path}/stop`)).toMatchObject({ status: 200, body: { status: 'STOPPING' } });
    expect(await login(online)).toContain('ECONNREFUSED');
    expect(await call('POST', `${path}/stop`)).toMatchObject({ status: 409 });
    expect((await until(path, 'STOPPED')).seen).toEqual(['STOPPING', 'STOPPED']);

    expect(await call('POST', `${path}/start`)).toMatchObject({ status: 200, body: { status: 'STOPPED' } });
    expect(await call('POST', `${path}/start`)).toMatchObject({ status: 200 });
    expect(await call('POST', `${path}/stop`)).toMatchObject({ status: 409 });
    const again = await until(path, 'ONLINE');
    expect(again.seen).toEqual(['STOPPED', 'ONLINE']);
    expect(again.body['ssh_port']).toBe(online['ssh_port']);
    expect(await login(again.body, 'cat /home/ubuntu/marker')).toBe('0 kept');
  });

  it('refuses another key, another user and a login without a key, and has few commands', async () => {
    const { online, login } = setUp();
    const instance = await online({ ssh_keys: [keys.own.public] });
    expect(await login(instance, 'true', keys.other)).toContain('authentication methods failed');
    expect(await login(instance, 'true', keys.own, 'root')).toContain('authentication methods failed');
    expect(await login(instance, 'uname')).toBe('127');
    expect(await login(instance, 'cat nothing')).toBe('1');
  });

  it('has the files of its cloud_init at its first boot', async () => {
    const { online, login } = setUp();
    const file = { path: '/etc/berth-marker', content: 'written\n', owner: 'root:root', permissions: '0644' };
    const instance = await online({ cloud_init: { write_files: [file], package_update: false } });
    expect(await login(instance, 'cat /etc/berth-marker')).toBe('0 written');
  });

  it('is destroyed from every live state, gives its unit back, and is 404 to everything then', async () => {
    const { call, until, online, login } = setUp();
    const gpu = { ...smallRequest, configuration_id: 'gpu-l4' };
    const provisioning = await call('POST', '/instances', gpu);
    const running = await online(gpu);
    expect(await call('POST', '/instances', gpu)).toMatchObject({
      status: 409,
      body: { error: { code: 'capacity_unavailable' } },
    });
    for (const id of [provisioning.body['id'], running['id']]) {
      const path = `/instances/${id}`;
      expect(await call('DELETE', path)).toMatchObject({ status: 200, body: { status: 'DESTROYING' } });
      expect(await call('DELETE', path)).toMatchObject({ status: 200, body: { status: 'DESTROYING' } });
      expect((await until(path, 'gone')).seen).toEqual(['DESTROYING', 'gone']);
      for (const [method, at] of [
        ['DELETE', path],
        ['POST', `${path}/stop`],
        ['POST', `${path}/start`],
      ] as const)
        expect(await call(method, at)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
    }
    expect(await login(running)).toContain('ECONNREFUSED');
    expect(await call('GET', '/instances')).toMatchObject({ body: { instances: [] } });
    expect(await call('POST', '/instances', gpu)).toMatchObject({ status: 201 });
  });

  it('stays destroyed, whatever was under way', async () => {
    const { call, until, online, clock } = setUp({ destroyedShownMs: 600_000 });
    const booting = await call('POST', '/instances', smallRequest);
    const stopping = await online();
    await call('POST', `/instances/${stopping['id']}/stop`);
    const { body: next } = await call('POST', '/instances', smallRequest);
    for (const { id } of [booting.body, stopping, next]) await call('DELETE', `/instances/${id}`);
    for (const { id } of [booting.body, stopping, next]) await until(`/instances/${id}`, 'DESTROYED');
    await clock.sleep(60_000);
    expect(await call('GET', '/instances')).toMatchObject({
      body: { instances: [{ status: 'DESTROYED' }, { status: 'DESTROYED' }, { status: 'DESTROYED' }] },
    });
  });

  it('starts no later for a second start', async () => {
    const { call, until, online, clock } = setUp();
    const path = `/instances/${(await online())['id']}`;
    await call('POST', `${path}/stop`);
    await until(path, 'STOPPED');
    await call('POST', `${path}/start`);
    await clock.sleep(19_000);
    await call('POST', `${path}/start`);
    await clock.sleep(1_000);
    expect(await call('GET', path)).toMatchObject({ body: { status: 'ONLINE' } });
  });

  it('changes updated_at with every status, never backwards, on the virtual wall clock', async () => {
    const { call, until, online, clock } = setUp();
    const body = await online();
    const path = `/instances/${body['id']}`;
    await call('POST', `${path}/stop`);
    const stopped = (await until(path, 'STOPPED')).body;
    const times = [body['created_at'], body['updated_at'], stopped['updated_at']].map((at) =>
      Date.parse(String(at)),
    );
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(clock.wall());
    expect(stopped['created_at']).toBe(body['created_at']);
  });

  it('gets a name of its own, and is listed by region', async () => {
    const { call } = setUp();
    await call('POST', '/instances', { ...smallRequest, name: 'twin' });
    expect(
      await call('POST', '/instances', { ...smallRequest, name: 'twin', region: 'us-east' }),
    ).toMatchObject({
      body: { name: 'twin-2' },
    });
    const namesIn = async (query: string) => {
      const { instances } = (await call('GET', `/instances${query}`)).body as {
        instances: { name: string }[];
      };
      return instances.map(({ name }) => name);
    };
    expect(await namesIn('')).toEqual(['twin', 'twin-2']);
    expect(await namesIn('?region=us-east')).toEqual(['twin-2']);
    expect(await namesIn('?region=nowhere')).toEqual([]);
  });

  it('is one of as many as there is capacity, when three are asked for at once', async () => {
    const { call } = setUp();
    const gpu = { ...smallRequest, configuration_id: 'gpu-l4', ssh_keys: [firstOf(keys.own)] };
    const answers = await Promise.all([1, 2, 3].map(() => call('POST', '/instances', gpu)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409]);
  });
});

describe('the catalog', () => {
  const offersOf = ({ body }: { body: Record<string, unknown> }) =>
    body['configurations'] as { id: string; available: boolean; regions: string[] }[];

  it('shows every offer, and at the gate only what can be deployed, where it can', async () => {
    const { call } = setUp();
    const all = offersOf(await call('GET', '/configurations'));
    expect(all.map(({ id, available }) => `${id} ${available}`)).toEqual([
      'cpu-small true',
      'cpu-plain true',
      'cpu-spot true',
      'gpu-l4 true',
      'metal-epyc false',
    ]);
    const now = offersOf(await call('GET', '/availability'));
    expect(now.map(({ id }) => id)).toEqual(['cpu-small', 'cpu-plain', 'cpu-spot', 'gpu-l4']);
    expect(all.find(({ id }) => id === 'cpu-plain')?.regions).toEqual(['eu-north', 'ap-south']);
    expect(now.find(({ id }) => id === 'cpu-plain')?.regions).toEqual(['eu-north']);
  });

  it('filters by type and by region, and follows the inventory', async () => {
    const { call } = setUp();
    const idsAt = async (path: string) => offersOf(await call('GET', path)).map(({ id }) => id);
    expect(await idsAt('/configurations?instance_type=SPOT')).toEqual(['cpu-spot']);
    expect(await idsAt('/configurations?instance_type=CLUSTER')).toEqual([]);
    expect(await idsAt('/availability?region=us-east')).toEqual(['cpu-small', 'cpu-spot']);
    expect(await idsAt('/availability?region=nowhere')).toEqual([]);
    expect(await call('GET', '/configurations?instance_type=spot')).toMatchObject({ status: 400 });
    for (let unit = 0; unit < 2; unit++)
      await call('POST', '/instances', { ...smallRequest, configuration_id: 'gpu-l4' });
    expect(await idsAt('/availability')).not.toContain('gpu-l4');
    expect(await idsAt('/configurations')).toContain('gpu-l4');
  });
});
