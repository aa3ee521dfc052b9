import { describe, expect, it } from 'vitest';
import { setUp, smallRequest } from './reference.fixture.ts';

const newVolume = { name: 'data', size_gb: 10, region: 'eu-north' };

describe('a volume', () => {
  it('is created, attached, detached and deleted', async () => {
    const { call, online } = setUp();
    const { id } = await online();
    const created = await call('POST', '/volumes', { ...newVolume, type: 'hdd' });
    expect(created).toMatchObject({
      status: 201,
      body: { name: 'data', size_gb: 10, region: 'eu-north', type: 'hdd', status: 'AVAILABLE' },
    });
    const path = `/volumes/${created.body['id']}`;
    const attached = { status: 200, body: { status: 'ATTACHED', attached_instance_ids: [id] } };
    expect(await call('POST', `${path}/attach`, { instance_ids: [id] })).toMatchObject(attached);
    expect(await call('POST', `${path}/attach`, { instance_ids: [id] })).toMatchObject(attached);
    expect(await call('DELETE', path)).toMatchObject({ status: 409, body: { error: {} } });
    const detached = { status: 200, body: { status: 'AVAILABLE', attached_instance_ids: [] } };
    expect(await call('POST', `${path}/detach`)).toMatchObject(detached);
    expect(await call('POST', `${path}/detach`, { instance_ids: [id] })).toMatchObject(detached);
    expect(await call('DELETE', path)).toEqual({ status: 204, headers: {}, body: {} });
    for (const method of ['GET', 'DELETE']) expect(await call(method, path)).toMatchObject({ status: 404 });
    for (const at of ['attach', 'detach'])
      expect(await call('POST', `${path}/${at}`, { instance_ids: [id] })).toMatchObject({ status: 404 });
  });

  it('is attached to several instances, and leaves those that are named or destroyed', async () => {
    const { call, online, until } = setUp();
    const ids = [(await online())['id'], (await online())['id'], (await online())['id']];
    const { body } = await call('POST', '/volumes', { ...newVolume, instance_ids: ids });
    expect(body).toMatchObject({ status: 'ATTACHED', attached_instance_ids: ids });
    const path = `/volumes/${body['id']}`;
    expect(await call('POST', `${path}/detach`, { instance_ids: [ids[0]] })).toMatchObject({
      body: { status: 'ATTACHED', attached_instance_ids: [ids[1], ids[2]] },
    });
    await call('DELETE', `/instances/${ids[1]}`);
    await until(`/instances/${ids[1]}`, 'gone');
    expect(await call('GET', path)).toMatchObject({ body: { attached_instance_ids: [ids[2]] } });
  });

  it('is attached at the create of an instance, once that is ONLINE', async () => {
    const { call, until } = setUp();
    const { id } = (await call('POST', '/volumes', newVolume)).body;
    const { body } = await call('POST', '/instances', { ...smallRequest, volume_ids: [id] });
    expect(await call('GET', `/volumes/${id}`)).toMatchObject({ body: { status: 'ATTACHING' } });
    await until(`/instances/${body['id']}`, 'ONLINE');
    expect(await call('GET', `/volumes/${id}`)).toMatchObject({
      body: { status: 'ATTACHED', attached_instance_ids: [body['id']] },
    });
  });

  it('is refused what does not fit, all or nothing', async () => {
    const { call, online } = setUp();
    const here = (await online())['id'];
    const elsewhere = (await online({ region: 'us-east' }))['id'];
    const path = `/volumes/${(await call('POST', '/volumes', newVolume)).body['id']}`;
    const statusOf = async (instance_ids: unknown) =>
      (await call('POST', `${path}/attach`, { instance_ids })).status;
    expect(await statusOf([])).toBe(400);
    expect(await statusOf(here)).toBe(400);
    expect(await statusOf([here, 'i-unknown'])).toBe(404);
    expect(await statusOf([here, elsewhere])).toBe(409);
    expect(await call('GET', path)).toMatchObject({ body: { status: 'AVAILABLE' } });
  });

  it('has the locations of the catalog', async () => {
    const { call } = setUp();
    expect((await call('GET', '/volumes/locations')).body['locations']).toMatchObject([
      { id: 'eu-north', types: ['nvme', 'hdd'], country_code: 'SE' },
      { id: 'us-east' },
    ]);
    expect(await call('POST', '/volumes/locations')).toMatchObject({ status: 405 });
  });
});
