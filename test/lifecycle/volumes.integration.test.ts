import { describe, expect, it } from 'vitest';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

async function start(options: TestOptions = {}) {
  const orchestrator = await startTestOrchestrator(options);
  const { request } = orchestrator;
  return {
    orchestrator,
    async volume(overrides: Record<string, unknown> = {}): Promise<string> {
      const { status, body, text } = await request('POST', '/volumes', { body: volumeRequest(overrides) });
      if (status !== 201) throw new Error(text);
      return String(body['id']);
    },
    async instance(overrides: Record<string, unknown> = {}): Promise<string> {
      const { status, body, text } = await request('POST', '/instances', {
        body: instanceRequest(overrides),
      });
      if (status !== 201) throw new Error(text);
      return String(body['id']);
    },
    async waitForVolume(id: string, status: string): Promise<Record<string, unknown>> {
      let reply = await request('GET', `/volumes/${id}`);
      await until(`${id} is ${status}`, async () => {
        reply = await request('GET', `/volumes/${id}`);
        return (reply.status === 404 ? 'GONE' : reply.body['status']) === status;
      });
      return reply.body;
    },
    attach: (id: string, ...instanceIds: string[]) =>
      request('POST', `/volumes/${id}/attach`, { body: { instance_ids: instanceIds } }),
    detach: (id: string, body?: unknown) =>
      request('POST', `/volumes/${id}/detach`, body === undefined ? {} : { body }),
  };
}

const code = ({ body }: { body: Record<string, unknown> }) => (body['error'] as { code: string }).code;
const shareableType = ({ catalog }: TestOrchestrator) =>
  catalog.regions.get('eu-frankfurt')?.volumeTypes.find(({ shareable }) => shareable)?.name;

describe('a volume', () => {
  it('is made, attached, detached and deleted [volume-lifecycle]', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach, detach } = await start();
    await using _ = orchestrator;
    const id = await volume();
    expect(await waitForVolume(id, 'AVAILABLE')).toMatchObject({
      name: 'data',
      size_gb: 100,
      region: 'eu-frankfurt',
      attached_instance_ids: [],
    });
    const machine = await instance();
    await orchestrator.waitFor(machine, 'ONLINE');
    expect((await attach(id, machine)).body['status']).toBe('ATTACHING');
    expect((await waitForVolume(id, 'ATTACHED'))['attached_instance_ids']).toEqual([machine]);
    expect((await attach(id, machine)).body['status']).toBe('ATTACHED');
    const refused = await orchestrator.request('DELETE', `/volumes/${id}`);
    expect([refused.status, code(refused)]).toEqual([409, 'volume_attached']);
    const detaching = await detach(id);
    expect(detaching.body).toMatchObject({ status: 'DETACHING', attached_instance_ids: [machine] });
    expect((await waitForVolume(id, 'AVAILABLE'))['attached_instance_ids']).toEqual([]);
    expect((await detach(id)).status).toBe(200);
    expect((await orchestrator.request('DELETE', `/volumes/${id}`)).status).toBe(204);
    await waitForVolume(id, 'GONE');
    expect((await orchestrator.request('DELETE', `/volumes/${id}`)).status).toBe(404);
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });

  it('named at the create of an instance is attached when the machine is there', async () => {
    const { orchestrator, volume, instance, waitForVolume } = await start();
    await using _ = orchestrator;
    const id = await volume();
    const machine = await instance({ volume_ids: [id, id] });
    expect((await waitForVolume(id, 'ATTACHED'))['attached_instance_ids']).toEqual([machine]);
  });

  it('that names an instance at create is attached when it is made', async () => {
    const { orchestrator, volume, instance, waitForVolume } = await start();
    await using _ = orchestrator;
    const machine = await instance();
    const id = await volume({ instance_ids: [machine] });
    expect((await waitForVolume(id, 'ATTACHED'))['attached_instance_ids']).toEqual([machine]);
  });

  it('survives its instance, which may be destroyed, fail or never come up [volume-survives-instance]', async () => {
    const { orchestrator, volume, instance, waitForVolume } = await start({ onlineWithinMs: 300 });
    await using _ = orchestrator;
    const id = await volume();
    const machine = await instance({ volume_ids: [id] });
    await waitForVolume(id, 'ATTACHED');
    await orchestrator.request('DELETE', `/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    await waitForVolume(id, 'AVAILABLE');
    const early = await instance({ volume_ids: [id] });
    await orchestrator.request('DELETE', `/instances/${early}`);
    await orchestrator.waitFor(early, 'GONE');
    await waitForVolume(id, 'AVAILABLE');
  });

  it('of an instance that failed is given back', async () => {
    const { orchestrator, volume, instance, waitForVolume } = await start({
      platform: { bootFailureRate: 1 },
    });
    await using _ = orchestrator;
    const id = await volume();
    const machine = await instance({ volume_ids: [id] });
    await orchestrator.waitFor(machine, 'ERROR');
    await waitForVolume(id, 'AVAILABLE');
  });

  it('is attached to one instance at a time, unless its type can be shared', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach, detach } = await start();
    await using _ = orchestrator;
    const [one, two] = [await instance(), await instance()];
    const single = await volume();
    await attach(single, one);
    const refused = await attach(single, two);
    expect([refused.status, code(refused)]).toEqual([409, 'volume_attached']);
    const shared = await volume({ type: shareableType(orchestrator) });
    await attach(shared, one, two);
    expect((await waitForVolume(shared, 'ATTACHED'))['attached_instance_ids']).toHaveLength(2);
    await detach(shared, { instance_ids: [one] });
    await expect
      .poll(
        async () => (await orchestrator.request('GET', `/volumes/${shared}`)).body['attached_instance_ids'],
      )
      .toEqual([two]);
  });

  it('goes to a new instance while another has it, if its type can be shared', async () => {
    const { orchestrator, volume, instance, waitForVolume } = await start();
    await using _ = orchestrator;
    const shared = await volume({ type: shareableType(orchestrator) });
    const one = await instance({ volume_ids: [shared] });
    await waitForVolume(shared, 'ATTACHED');
    const two = await instance({ volume_ids: [shared] });
    await expect
      .poll(async () => {
        const { body } = await orchestrator.request('GET', `/volumes/${shared}`);
        return [body['status'], (body['attached_instance_ids'] as string[]).toSorted()];
      })
      .toEqual(['ATTACHED', [one, two].toSorted()]);
    for (const id of [one, two]) await orchestrator.waitFor(id, 'ONLINE');
    const single = await volume();
    await instance({ volume_ids: [single] });
    await waitForVolume(single, 'ATTACHED');
    const body = instanceRequest({ volume_ids: [single] });
    const refused = await orchestrator.request('POST', '/instances', { body });
    expect([refused.status, code(refused)]).toEqual([400, 'invalid_request']);
  });

  it('is refused as a whole where one instance is not there, and nothing is attached', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach } = await start();
    await using _ = orchestrator;
    const id = await volume({ type: shareableType(orchestrator) });
    await waitForVolume(id, 'AVAILABLE');
    expect((await attach(id, await instance(), 'inst-unknown')).status).toBe(404);
    expect((await attach(id, await instance({ region: 'us-ashburn' }))).status).toBe(409);
    expect((await orchestrator.request('GET', `/volumes/${id}`)).body['status']).toBe('AVAILABLE');
  });
});

describe('on a platform that attaches only while the machine is stopped', () => {
  it('the orchestrator stops and starts the instance by itself and reports it', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach } = await start({
      platform: { attachVolume: 'cold', stopMs: [300, 300], startMs: [50, 50] },
    });
    await using _ = orchestrator;
    const machine = await instance();
    await orchestrator.waitFor(machine, 'ONLINE');
    const seen: string[] = [];
    orchestrator.store.subscribe({
      instancesChanged: (records) => seen.push(...records.map(({ status }) => status)),
    });
    const id = await volume();
    await attach(id, machine);
    await orchestrator.waitFor(machine, 'STOPPING', 'STOPPED');
    expect((await orchestrator.request('POST', `/instances/${machine}/stop`)).status).toBe(409);
    expect((await orchestrator.request('POST', `/instances/${machine}/start`)).status).toBe(200);
    expect((await waitForVolume(id, 'ATTACHED'))['attached_instance_ids']).toEqual([machine]);
    await orchestrator.waitFor(machine, 'ONLINE');
    expect([...new Set(seen)]).toEqual(['STOPPING', 'STOPPED', 'ONLINE']);
    expect(await orchestrator.store.read.claims.isHeldBy(machine)).toBe(true);
  });

  it('an attachment to a stopped instance leaves it stopped', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach } = await start({
      platform: { attachVolume: 'cold' },
    });
    await using _ = orchestrator;
    const machine = await instance();
    await orchestrator.waitFor(machine, 'ONLINE');
    await orchestrator.request('POST', `/instances/${machine}/stop`);
    await orchestrator.waitFor(machine, 'STOPPED');
    const id = await volume();
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
    expect((await orchestrator.request('GET', `/instances/${machine}`)).body['status']).toBe('STOPPED');
  });

  it('a delete during the cycle wins [delete-during-cold-attach]', async () => {
    const { orchestrator, volume, instance, waitForVolume, attach } = await start({
      platform: { attachVolume: 'cold', stopMs: [500, 500] },
    });
    await using _ = orchestrator;
    const machine = await instance();
    await orchestrator.waitFor(machine, 'ONLINE');
    const id = await volume();
    await attach(id, machine);
    await orchestrator.waitFor(machine, 'STOPPING');
    await orchestrator.request('DELETE', `/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    await waitForVolume(id, 'AVAILABLE');
  });
});

it('are not sold on a platform that has none, whatever the catalog says [volumes-platform-without]', async () => {
  await using berth = await startPlainOrchestrator(() => 'none', { manifest: { attachVolume: 'none' } });
  const { request } = berth.orchestrator;
  expect((await request('GET', '/volumes/locations')).body).toEqual({ locations: [] });
  const refused = await request('POST', '/volumes', { body: volumeRequest() });
  expect([refused.status, code(refused)]).toEqual([400, 'invalid_request']);
  expect(refused.text).toContain('expected a region of /volumes/locations');
});
