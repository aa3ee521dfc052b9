import { afterEach, describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { backUp } from '../support/restored.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { withVolumes } from './volume-races.fixture.ts';

let orchestrator: TestOrchestrator;
afterEach(() => orchestrator[Symbol.asyncDispose]());

interface ErrorReply {
  error: { code: string; message: string; details?: Record<string, unknown> };
}

/** The catalog that comes with Berth, with so many GB in each region that sells volumes. */
async function start(storageGb: number | undefined, options: TestOptions = {}): Promise<void> {
  const changeCatalog = (catalog: Catalog): Catalog => ({
    ...catalog,
    regions: new Map([...catalog.regions].map(([token, region]) => [token, { ...region, storageGb }])),
  });
  orchestrator = await startTestOrchestrator({ changeCatalog, ...options });
}

const create = (sizeGb: number, changes = {}, headers = {}) =>
  orchestrator.request<ErrorReply & { id: string; size_gb: number }>('POST', '/volumes', {
    body: volumeRequest({ size_gb: sizeGb, ...changes }),
    headers,
  });
const resize = (id: string, sizeGb: number) =>
  orchestrator.request<ErrorReply>('POST', `/x/volumes/${id}/resize`, { body: { size_gb: sizeGb } });
const codeOf = ({ status, body }: { status: number; body: ErrorReply }) => `${status} ${body.error?.code}`;
const read = async (id: string) => (await orchestrator.request('GET', `/volumes/${id}`)).body;
const reads = (id: string, status: string) =>
  until(`${id} reads ${status}`, async () => (await read(id))['status'] === status);
const claimedGb = async () =>
  (await orchestrator.store.read.storageClaims.use()).reduce((sum, use) => sum + use.claimedGb, 0);

describe('the storage of a location', () => {
  it('is sold once: of 20 creates at once as many are 201 as fit, the others 409 capacity_unavailable', async () => {
    await start(700);
    const replies = await Promise.all(Array.from({ length: 20 }, () => create(100)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(7);
    const refused = replies.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(codeOf))).toEqual(new Set(['409 capacity_unavailable']));
    expect(refused[0]?.body.error.details).toMatchObject({ size_gb: 100, reason: 'sold_out' });
    expect((await create(100, { region: 'eu-helsinki' })).status).toBe(201);
  });

  it('comes back when a volume is proved gone, and not before', async () => {
    const gate = Promise.withResolvers<void>();
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withVolumes(driver, (volumes) => ({
        destroy: async (ref, cookie) => {
          await gate.promise;
          return volumes.destroy(ref, cookie, anOrder);
        },
      }));
    await start(100, { wrapDriver });
    const { body } = await create(100);
    await reads(body.id, 'AVAILABLE');
    expect((await orchestrator.request('DELETE', `/volumes/${body.id}`)).status).toBe(204);
    expect(codeOf(await create(100))).toBe('409 capacity_unavailable');
    gate.resolve();
    await until('the storage is free', async () => (await create(100)).status === 201);
    expect(await claimedGb()).toBe(100);
  });

  it('comes back when the platform refuses a volume for good', async () => {
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withVolumes(driver, () => ({
        create: async () => ({ outcome: 'failed', code: 'quota', sideEffect: 'none', detail: 'no room' }),
      }));
    await start(100, { wrapDriver });
    const { body } = await create(100);
    await reads(body.id, 'ERROR');
    await until('the storage is free', async () => (await claimedGb()) === 0);
    expect((await create(100)).status).toBe(201);
  });

  it('has no end where the catalog gives no figure, and what is sold is known all the same', async () => {
    await start(undefined);
    for (let count = 0; count < 3; count++) expect((await create(16_000)).status).toBe(201);
    expect(await claimedGb()).toBe(48_000);
  });

  it('is refused as platform_silent after a restore, until the volumes were compared [unavailable-storage]', async () => {
    await start(100);
    const restore = await backUp(orchestrator);
    await using restored = await restore({
      wrapDriver: (driver) =>
        withVolumes(driver, () => ({ list: async () => ({ answer: 'unknown', reason: 'no answer' }) })),
    });
    const refused = await restored.send('POST', '/volumes', volumeRequest({ size_gb: 50 })).catch(String);
    expect(refused).toContain('"reason":"platform_silent"');
  });

  it('is claimed once by a create that is repeated with its Idempotency-Key', async () => {
    await start(100);
    for (let count = 0; count < 3; count++)
      expect((await create(100, {}, { 'Idempotency-Key': 'k' })).status).toBe(201);
  });
});

describe('a resize', () => {
  it('claims the difference, and is 409 capacity_unavailable where that is not there', async () => {
    await start(300);
    const { body } = await create(100);
    const other = await create(100);
    await reads(body.id, 'AVAILABLE');
    expect(codeOf(await resize(body.id, 201))).toBe('409 capacity_unavailable');
    expect((await resize(body.id, 200)).status).toBe(200);
    expect(codeOf(await create(10))).toBe('409 capacity_unavailable');
    await until('it is larger', async () => (await read(body.id))['size_gb'] === 200);
    expect([await claimedGb(), other.status]).toEqual([300, 201]);
  });

  it('that the platform refuses gives the difference back', async () => {
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withVolumes(driver, () => ({
        resize: async () => ({ outcome: 'failed', code: 'capacity', sideEffect: 'none', detail: 'full' }),
      }));
    await start(300, { wrapDriver });
    const { body } = await create(100);
    await reads(body.id, 'AVAILABLE');
    expect((await resize(body.id, 300)).status).toBe(200);
    await until('it is given back', async () => (await claimedGb()) === 100);
    expect((await read(body.id))['size_gb']).toBe(100);
    expect((await create(200)).status).toBe(201);
  });

  it('of which the platform does not tell how it ended keeps what it claims until it does', async () => {
    let isSilent = true;
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withVolumes(driver, (volumes) => ({
        get: async (ref) =>
          isSilent && resizes > 0 ? { answer: 'unknown', reason: 'no answer' } : volumes.get(ref),
        resize: async () => {
          resizes++;
          return { outcome: 'failed', code: 'invalid', sideEffect: 'possible', detail: 'broken' };
        },
      }));
    let resizes = 0;
    await start(300, { wrapDriver });
    const { body } = await create(100);
    await reads(body.id, 'AVAILABLE');
    await resize(body.id, 300);
    await until('it was tried twice', () => resizes > 1);
    expect(await claimedGb()).toBe(300);
    isSilent = false;
    await until('it is given back', async () => (await claimedGb()) === 100);
  });
});

describe('quotas of an account', () => {
  it('refuse one instance, volume or GB too many with 409 quota_exceeded, until something is gone', async () => {
    await start(undefined, { quotas: { instances: 2, volumes: 2, storage_gb: 250 } });
    const other = await orchestrator.addAccount('other');
    const instances = await Promise.all(
      Array.from({ length: 5 }, () =>
        orchestrator.request<ErrorReply & { id: string }>('POST', '/instances', { body: instanceRequest() }),
      ),
    );
    const made = instances.filter(({ status }) => status === 201);
    expect(made).toHaveLength(2);
    expect(instances.filter((reply) => codeOf(reply) === '409 quota_exceeded')).toHaveLength(3);
    expect(instances.find(({ status }) => status === 409)?.body.error.details).toEqual({
      quota: 'instances',
      limit: 2,
      used: 2,
    });
    expect((await create(100)).status).toBe(201);
    expect((await create(151)).body.error.details).toEqual({ quota: 'storage_gb', limit: 250, used: 100 });
    const second = await create(150);
    expect(second.status).toBe(201);
    expect((await create(10)).body.error.details).toEqual({ quota: 'volumes', limit: 2, used: 2 });
    await reads(second.body.id, 'AVAILABLE');
    expect(codeOf(await resize(second.body.id, 151))).toBe('409 quota_exceeded');
    expect(
      (await orchestrator.request('POST', '/instances', { key: other, body: instanceRequest() })).status,
    ).toBe(201);

    const [{ body: gone } = { body: { id: '' } }] = made;
    await orchestrator.request('DELETE', `/instances/${gone.id}`);
    await orchestrator.waitFor(gone.id, 'GONE');
    expect((await orchestrator.request('POST', '/instances', { body: instanceRequest() })).status).toBe(201);
  });
});
