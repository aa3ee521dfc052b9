import { describe, expect, it } from 'vitest';
import type { Variation } from './mutant.ts';
import { defaultOptions } from './reference/model.ts';
import { type ReferenceClient, setUp, smallRequest } from './reference/reference.fixture.ts';
import { variations } from './variations.ts';

const variation = (id: string): Variation => {
  const found = variations.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no variation ${id}.`);
  return found;
};

async function setUpVariation({ options, behave }: Variation): Promise<ReferenceClient> {
  const client = setUp({ ...options, ...(behave && { behave }) });
  if (options?.staticKeys !== false) return client;
  const isOfLogin = options.token === 'password';
  const body = JSON.stringify(isOfLogin ? defaultOptions.login : { api_key: 'reference-key-one' });
  const issued = await client.send('POST', '/auth/token', {}, body);
  client.useCredential(String(issued.body['access_token']));
  return client;
}

const setUpById = (id: string): Promise<ReferenceClient> => setUpVariation(variation(id));

/** The status that a GET shows. */
const statusAt = async ({ call }: ReferenceClient, path: string): Promise<unknown> => {
  const { status, body } = await call('GET', path);
  return status === 404 ? 404 : body['status'];
};

describe('every lawful variation', () => {
  it('has a name of its own', () => {
    const ids = variations.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the variation', () => {
  it('instant shows the final state in every answer but the 201', async () => {
    const client = await setUpById('instant');
    const { body } = await client.call('POST', '/instances', smallRequest);
    expect(body['status']).toBe('PROVISIONING');
    const path = `/instances/${body['id']}`;
    expect(await statusAt(client, path)).toBe('ONLINE');
    for (const [operation, status] of [
      ['stop', 'STOPPED'],
      ['start', 'ONLINE'],
    ] as const)
      expect((await client.call('POST', `${path}/${operation}`)).body['status']).toBe(status);
    expect((await client.call('DELETE', path)).body['status']).toBe('DESTROYED');
    expect(await statusAt(client, path)).toBe(404);
  });

  it('destroyed-is-shown-and-answered shows DESTROYED for a minute, and answers it to DELETE for good', async () => {
    const client = await setUpById('destroyed-is-shown-and-answered');
    const path = `/instances/${(await client.online())['id']}`;
    await client.call('DELETE', path);
    await client.until(path, 'DESTROYED');
    expect(await client.call('GET', '/instances')).toMatchObject({
      body: { instances: [{ status: 'DESTROYED' }] },
    });
    expect(await client.call('POST', `${path}/start`)).toMatchObject({ status: 409 });
    await client.clock.sleep(60_000);
    expect(await statusAt(client, path)).toBe(404);
    expect(await client.call('DELETE', path)).toMatchObject({ status: 200, body: { status: 'DESTROYED' } });
  });

  it('cold-attach shows the instance on its way through STOPPED, and attaches nothing before', async () => {
    const client = await setUpById('cold-attach');
    const { id } = await client.online();
    const volume = await client.call('POST', '/volumes', { name: 'd', size_gb: 1, region: 'eu-north' });
    const volumePath = `/volumes/${volume.body['id']}`;
    const attached = await client.call('POST', `${volumePath}/attach`, { instance_ids: [id] });
    expect(attached.body).toMatchObject({ status: 'ATTACHING', attached_instance_ids: [] });
    expect((await client.until(`/instances/${id}`, 'ONLINE')).seen).toEqual([
      'STOPPING',
      'STOPPED',
      'ONLINE',
    ]);
    expect(await statusAt(client, volumePath)).toBe('ATTACHED');
  });

  it('asynchronous-detach lists the attachment until it is gone, and forces it off for a delete', async () => {
    const client = await setUpById('asynchronous-detach');
    const { id } = await client.online();
    const volume = await client.call('POST', '/volumes', {
      name: 'd',
      size_gb: 1,
      region: 'eu-north',
      instance_ids: [id],
    });
    const path = `/volumes/${volume.body['id']}`;
    const detaching = { status: 200, body: { status: 'DETACHING', attached_instance_ids: [id] } };
    expect(await client.call('POST', `${path}/detach`)).toMatchObject(detaching);
    await client.clock.sleep(11_000);
    expect(await client.call('GET', path)).toMatchObject(detaching);
    expect((await client.until(path, 'AVAILABLE')).body['attached_instance_ids']).toEqual([]);
    await client.call('POST', `${path}/attach`, { instance_ids: [id] });
    await client.call('POST', `${path}/detach`);
    expect(await client.call('DELETE', path)).toMatchObject({ status: 204 });
  });

  it('slow-volumes attaches what it was asked to when the volume is there', async () => {
    const client = await setUpById('slow-volumes');
    const { id } = await client.online();
    const volume = await client.call('POST', '/volumes', {
      name: 'd',
      size_gb: 1,
      region: 'eu-north',
      instance_ids: [id],
    });
    expect((await client.until(`/volumes/${volume.body['id']}`, 'ATTACHED')).seen).toEqual([
      'CREATING',
      'ATTACHED',
    ]);
  });

  it('cold-attach-and-asynchronous-detach stops the machine when the volume is there, and attaches again', async () => {
    const client = await setUpById('cold-attach-and-asynchronous-detach');
    const { id } = await client.online();
    const asked = { name: 'd', size_gb: 1, region: 'eu-north' };
    const path = `/volumes/${(await client.call('POST', '/volumes', asked)).body['id']}`;
    await client.call('POST', `${path}/attach`, { instance_ids: [id] });
    expect(await statusAt(client, `/instances/${id}`)).toBe('ONLINE');
    expect((await client.until(path, 'ATTACHED')).seen).toEqual(['CREATING', 'ATTACHING', 'ATTACHED']);
    await client.call('POST', `${path}/detach`);
    await client.clock.sleep(11_000);
    await client.call('POST', `${path}/attach`, { instance_ids: [id] });
    await client.clock.sleep(11_000);
    expect(await statusAt(client, path)).toBe('ATTACHED');
  });

  it('no-inline-volumes leaves the volumes of a create alone', async () => {
    const client = await setUpById('no-inline-volumes');
    const { body } = await client.call('POST', '/volumes', { name: 'd', size_gb: 1, region: 'eu-north' });
    await client.online({ volume_ids: [body['id']] });
    expect(await statusAt(client, `/volumes/${body['id']}`)).toBe('AVAILABLE');
  });

  it('no-resume says why it does not start', async () => {
    const client = await setUpById('no-resume');
    const path = `/instances/${(await client.online())['id']}`;
    await client.call('POST', `${path}/stop`);
    await client.until(path, 'STOPPED');
    expect((await client.call('POST', `${path}/start`)).body).toMatchObject({
      error: { code: 'resume_unsupported', message: expect.stringContaining('cannot resume') },
    });
  });

  it('required-fields-only shows what O: requires and what SSH needs', async () => {
    const client = await setUpById('required-fields-only');
    const fieldsOf = (thing: unknown) => Object.keys(Object(thing)).sort().join(' ');
    const spot = { configuration_id: 'cpu-spot', region: 'us-east' };
    const bare = 'configuration_id created_at id public_ip region ssh_port ssh_username status updated_at';
    expect(fieldsOf(await client.online())).toBe(bare);
    expect(await client.online(spot)).toMatchObject({ price_per_hour: 0.015 });
    const { configurations } = (await client.call('GET', '/configurations')).body as {
      configurations: unknown[];
    };
    expect(fieldsOf(configurations[0])).toBe(
      'available id instance_type memory_gb name price_per_hour regions storage_gb supports_cloud_init vcpus',
    );
    const volume = await client.call('POST', '/volumes', { name: 'd', size_gb: 1, region: 'eu-north' });
    expect(fieldsOf(volume.body)).toBe('id name region size_gb status');
    const { locations } = (await client.call('GET', '/volumes/locations')).body as { locations: unknown[] };
    expect(fieldsOf(locations[0])).toBe('id name');
    expect(fieldsOf((await client.call('POST', '/instances', {})).body['error'])).toBe('code message');
  });

  it('extra-fields has them in answers, items and errors alike', async () => {
    const { call } = await setUpById('extra-fields');
    const x_vendor = expect.any(Object);
    expect((await call('GET', '/configurations')).body).toMatchObject({
      x_vendor,
      configurations: [{ x_vendor }, {}, {}, {}, {}],
    });
    expect((await call('GET', '/nothing')).body).toMatchObject({ x_vendor, error: { x_vendor } });
  });

  it('duplicate-names keeps names as they were asked for; direct-network shows no forwards', async () => {
    const named = { ...smallRequest, name: 'twin' };
    const { call } = await setUpById('duplicate-names');
    await call('POST', '/instances', named);
    expect((await call('POST', '/instances', named)).body).toMatchObject({ name: 'twin' });
    const direct = await (await setUpById('direct-network')).online();
    expect(direct).toMatchObject({ private_ip: expect.any(String), ssh_port: expect.any(Number) });
    expect(direct).not.toHaveProperty('port_forwards');
  });

  it.each([
    ['no-gpus', ['cpu-small', 'cpu-plain', 'cpu-spot', 'metal-epyc']],
    ['nothing-sold-out', ['cpu-small', 'cpu-plain', 'cpu-spot', 'gpu-l4']],
  ])('%s leaves its offers out', async (id, offers) => {
    const { body } = await (await setUpById(id)).call('GET', '/configurations');
    expect((body['configurations'] as { id: string }[]).map((offer) => offer.id)).toEqual(offers);
  });

  it('whole-seconds has timestamps without a fraction', async () => {
    expect((await (await setUpById('whole-seconds')).online())['created_at']).toMatch(/T\d\d:\d\d:\d\dZ$/);
  });
});
