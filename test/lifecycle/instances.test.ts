import { describe, expect, it } from 'vitest';
import { toHostname } from '../../src/orchestrator/steps/instance/create.ts';
import { newPublicKey, publicKeyFixtures } from '../support/doubles/ssh-keys.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

async function create(
  orchestrator: TestOrchestrator,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const { status, body, text } = await orchestrator.request('POST', '/instances', {
    body: instanceRequest(overrides),
  });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

async function claimed(orchestrator: TestOrchestrator): Promise<number> {
  return (await orchestrator.store.read.claims.use()).reduce((sum, use) => sum + use.claimed, 0);
}

const post = (orchestrator: TestOrchestrator, path: string) => orchestrator.request('POST', path);

describe('an instance', () => {
  it('goes from 201 PROVISIONING to ONLINE with every kind of key, stops, starts, and is gone', async () => {
    await using orchestrator = await startTestOrchestrator();
    const keys = publicKeyFixtures();
    const created = await orchestrator.request('POST', '/instances', {
      body: instanceRequest({ name: 'my box', ssh_keys: keys }),
    });
    expect(created.body).toMatchObject({
      status: 'PROVISIONING',
      name: 'my box',
      configuration_id: 'cpu-4x16',
      region: 'eu-frankfurt',
    });
    const id = String(created.body['id']);
    const online = await orchestrator.waitFor(id, 'ONLINE', 'ERROR');
    expect(online).toMatchObject({ status: 'ONLINE', public_ip: '127.0.0.1', ssh_username: 'ubuntu' });
    expect((await post(orchestrator, `/instances/${id}/stop`)).body['status']).toBe('STOPPING');
    await orchestrator.waitFor(id, 'STOPPED');
    expect((await post(orchestrator, `/instances/${id}/start`)).body['status']).toBe('STOPPED');
    const again = await orchestrator.waitFor(id, 'ONLINE');
    expect(again['public_ip']).toBe(online['public_ip']);
    expect((await orchestrator.request('DELETE', `/instances/${id}`)).body['status']).toBe('DESTROYING');
    await orchestrator.waitFor(id, 'GONE');
    expect((await orchestrator.request('DELETE', `/instances/${id}`)).status).toBe(404);
    expect(
      (await orchestrator.request<{ instances: unknown[] }>('GET', '/instances')).body.instances,
    ).toEqual([]);
    expect(await orchestrator.driver.list()).toEqual({ answer: 'listed', items: [] });
    expect(await claimed(orchestrator)).toBe(0);
  });

  it('is read as it is right after every write, and its updated_at never goes back', async () => {
    await using orchestrator = await startTestOrchestrator();
    const id = await create(orchestrator);
    expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('PROVISIONING');
    let last = '';
    const seen = new Set<unknown>();
    while (!seen.has('ONLINE')) {
      const { body } = await orchestrator.request('GET', `/instances/${id}`);
      seen.add(body['status']);
      expect(String(body['updated_at']) >= last).toBe(true);
      last = String(body['updated_at']);
      await new Promise((resolve) => setImmediate(resolve));
    }
  });

  it('that is starting takes a second start for success, and a delete, and no stop', async () => {
    await using orchestrator = await startTestOrchestrator({ platform: { startMs: [300, 300] } });
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ONLINE');
    await post(orchestrator, `/instances/${id}/stop`);
    await orchestrator.waitFor(id, 'STOPPED');
    await post(orchestrator, `/instances/${id}/start`);
    expect((await post(orchestrator, `/instances/${id}/start`)).status).toBe(200);
    expect((await post(orchestrator, `/instances/${id}/stop`)).status).toBe(409);
    expect((await orchestrator.request('DELETE', `/instances/${id}`)).status).toBe(200);
    await orchestrator.waitFor(id, 'GONE');
  });

  it('of an offer that cannot be resumed answers start with 409 and stays as it is [resume-unsupported]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const id = await create(orchestrator, { configuration_id: 'b200-bare-metal-8x', region: 'us-ashburn' });
    await orchestrator.waitFor(id, 'ONLINE');
    await post(orchestrator, `/instances/${id}/stop`);
    await orchestrator.waitFor(id, 'STOPPED');
    const reply = await post(orchestrator, `/instances/${id}/start`);
    expect([reply.status, (reply.body['error'] as { code: string }).code]).toEqual([
      409,
      'resume_unsupported',
    ]);
    expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('STOPPED');
    const ref = (await orchestrator.store.read.instances.byId(id))?.ownerRef ?? '';
    expect(await orchestrator.simulator.get(ref)).toMatchObject({ value: { power: 'stopped' } });
  });

  it('deleted while it is provisioning ends DESTROYED and leaves nothing', async () => {
    await using orchestrator = await startTestOrchestrator({ platform: { bootMs: [200, 200] } });
    const ids = await Promise.all(Array.from({ length: 5 }, () => create(orchestrator)));
    for (const id of ids)
      expect((await orchestrator.request('DELETE', `/instances/${id}`)).body['status']).toBe('DESTROYING');
    for (const id of ids) await orchestrator.waitFor(id, 'GONE');
    expect(await orchestrator.driver.list()).toEqual({ answer: 'listed', items: [] });
    expect(await claimed(orchestrator)).toBe(0);
  });

  it('may have the name of another [name-not-unique]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const ids = [await create(orchestrator, { name: 'same' }), await create(orchestrator, { name: 'same' })];
    for (const id of ids)
      expect((await orchestrator.waitFor(id, 'ONLINE', 'ERROR'))['status']).toBe('ONLINE');
  });

  it('asked for twice without an Idempotency-Key is two, both listed; deleting one leaves the other ONLINE [create-twice-without-key]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const body = instanceRequest({ name: 'twice' });
    const replies = [1, 2].map(() => orchestrator.request('POST', '/instances', { body }));
    const [one = '', other = ''] = (await Promise.all(replies)).map((reply) => String(reply.body['id']));
    for (const id of [one, other]) await orchestrator.waitFor(id, 'ONLINE');
    const listed = async () =>
      (await orchestrator.request<{ instances: { id: string }[] }>('GET', '/instances')).body.instances.map(
        ({ id }) => id,
      );
    expect((await listed()).toSorted()).toEqual([one, other].toSorted());
    await orchestrator.request('DELETE', `/instances/${one}`);
    await orchestrator.waitFor(one, 'GONE');
    expect((await orchestrator.request('GET', `/instances/${other}`)).body['status']).toBe('ONLINE');
    expect(await listed()).toEqual([other]);
  });

  it.each([
    ['$(reboot); `id`', 'reboot-id-'],
    ['--help', 'help-'],
    ['../../etc/passwd', 'etc-passwd-'],
    ['</name><devices>', 'name-devices-'],
    ['Ünïcødé 🚀', 'n-c-d-'],
    ['🚀', 'inst-'],
    ['x'.repeat(255), `${'x'.repeat(40)}-`],
  ])('named %j gets a plain host name', (name, start) => {
    const hostname = toHostname(name, 'inst-0123456789abcdef');
    expect(hostname).toBe(`${start}89abcdef`);
    expect(hostname).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
  });
});

describe('capacity', () => {
  it('of a stopped instance is free for others, and a start without it is 409 with the disk kept [start-without-capacity]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const [configuration_id, region] = threeUnits(orchestrator);
    const offer = { configuration_id, region };
    const units = 3;
    const ids = [];
    for (let taken = 0; taken < units; taken++) ids.push(await create(orchestrator, offer));
    const [first = ''] = ids;
    await orchestrator.waitFor(first, 'ONLINE');
    expect((await orchestrator.request('POST', '/instances', { body: instanceRequest(offer) })).status).toBe(
      409,
    );
    await post(orchestrator, `/instances/${first}/stop`);
    await orchestrator.waitFor(first, 'STOPPED');
    const last = await create(orchestrator, offer);
    const refused = await post(orchestrator, `/instances/${first}/start`);
    expect([refused.status, (refused.body['error'] as { code: string }).code]).toEqual([
      409,
      'capacity_unavailable',
    ]);
    expect((await orchestrator.request('GET', `/instances/${first}`)).body['status']).toBe('STOPPED');
    await orchestrator.request('DELETE', `/instances/${last}`);
    await orchestrator.waitFor(last, 'GONE');
    expect((await post(orchestrator, `/instances/${first}/start`)).status).toBe(200);
    await orchestrator.waitFor(first, 'ONLINE');
  });

  it('that is held stays with a stopped instance', async () => {
    await using orchestrator = await startTestOrchestrator();
    const held = [...orchestrator.catalog.offers.values()].find(
      ({ onStop, resumable, placements }) =>
        onStop === 'hold' && resumable && placements.some(({ units }) => units > 0),
    );
    const region = held?.placements.find(
      ({ region, units }) => units > 0 && orchestrator.catalog.regions.get(region)?.drained === false,
    )?.region;
    const id = await create(orchestrator, { configuration_id: held?.id, region });
    await orchestrator.waitFor(id, 'ONLINE');
    await post(orchestrator, `/instances/${id}/stop`);
    await orchestrator.waitFor(id, 'STOPPED');
    expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(true);
  });

  it('lost to parallel creates is a 409 for each one too many, and comes back [last-unit-race]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const [offer, placement] = threeUnits(orchestrator);
    const body = () =>
      instanceRequest({ configuration_id: offer, region: placement, ssh_keys: [newPublicKey()] });
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => orchestrator.request('POST', '/instances', { body: body() })),
    );
    const created = replies.filter(({ status }) => status === 201).map((reply) => String(reply.body['id']));
    const refused = replies
      .filter(({ status }) => status === 409)
      .map((reply) => (reply.body['error'] as { code: string }).code);
    expect([created.length, refused.length, new Set(refused)]).toEqual([
      3,
      57,
      new Set(['capacity_unavailable']),
    ]);
    for (const id of created) await orchestrator.request('DELETE', `/instances/${id}`);
    for (const id of created) await orchestrator.waitFor(id, 'GONE');
    const { body: available } = await orchestrator.request<{ configurations: { id: string }[] }>(
      'GET',
      `/availability?region=${placement}`,
    );
    expect(available.configurations.map(({ id }) => id)).toContain(offer);
  });
});

function threeUnits({ catalog }: TestOrchestrator): [offer: string, region: string] {
  for (const { id, placements, maintenance } of catalog.offers.values())
    for (const { region, units } of placements)
      if (units === 3 && !maintenance && catalog.regions.get(region)?.drained === false) return [id, region];
  throw new Error('the bundled catalog has no placement with exactly three units');
}
