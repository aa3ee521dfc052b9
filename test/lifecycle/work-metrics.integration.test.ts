import { describe, expect, it } from 'vitest';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

/** An offer of which the catalog has three units there. */
const scarce = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' };
const MINUTE_MS = 60_000;

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;

/** The samples of /metrics whose names begin so, by what stands before the figure. */
async function samples({ orchestrator }: Berth, prefix: string): Promise<Record<string, number>> {
  const text = await (await orchestrator.admin.fetch('/metrics')).text();
  const found = text.matchAll(new RegExp(`^(${prefix}\\S*) (\\S+)$`, 'gm'));
  return Object.fromEntries([...found].map(([, name = '', figure]) => [name, Number(figure)]));
}

async function createScarce({ orchestrator }: Berth): Promise<string> {
  const { status, body } = await orchestrator.request('POST', '/instances', {
    body: instanceRequest(scarce),
  });
  expect(status).toBe(201);
  return String(body['id']);
}

describe('the metrics of the work', () => {
  it('tell how long an instance took to be ONLINE, once, and what its steps asked the platform [metrics-online]', async () => {
    await using berth = await startPlainOrchestrator();
    const id = await createScarce(berth);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    const online = await samples(berth, 'berth_instance_online_seconds_(?:count|sum)');
    expect(online).toEqual({
      'berth_instance_online_seconds_count{offer="h100-sxm-1x"}': 1,
      'berth_instance_online_seconds_sum{offer="h100-sxm-1x"}': expect.any(Number),
    });
    const record = await berth.orchestrator.store.read.instances.byId(id);
    const [event] = (await berth.orchestrator.store.read.history.of(id)).filter(
      ({ toStatus }) => toStatus === 'ONLINE',
    );
    const seconds = ((event?.at ?? Number.NaN) - (record?.createdAt ?? Number.NaN)) / 1000;
    expect(online['berth_instance_online_seconds_sum{offer="h100-sxm-1x"}']).toBe(seconds);

    expect(await samples(berth, 'berth_platform_calls_total')).toMatchObject({
      'berth_platform_calls_total{platform="default",call="create",outcome="done"}': 1,
      'berth_platform_calls_total{platform="default",call="ssh",outcome="proved"}': 1,
      'berth_platform_calls_total{platform="default",call="list",outcome="listed"}': expect.any(Number),
    });
    expect(await samples(berth, 'berth_platform_call_seconds_count')).toMatchObject({
      'berth_platform_call_seconds_count{platform="default",call="create"}': 1,
    });
    expect(await samples(berth, 'berth_steps_total')).toMatchObject({
      'berth_steps_total{platform="default",resource="instance",step="create",next="verify"}': 1,
      'berth_steps_total{platform="default",resource="instance",step="verify",next="finish"}': 1,
    });

    await berth.orchestrator.request('POST', `/instances/${id}/stop`);
    await berth.passUntil(`/instances/${id}`, 'STOPPED');
    await berth.orchestrator.request('POST', `/instances/${id}/start`);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    const after = await samples(berth, 'berth_instance_online_seconds_count');
    expect(Object.values(after)).toEqual([1]);
  });

  it('tell how long it took without an outage, by whose length its deadline was moved [metrics-online-outage]', async () => {
    let isDown = false;
    await using berth = await startPlainOrchestrator(() => (isDown ? 'fail-before' : 'none'));
    isDown = true;
    const createdAt = berth.clock.now();
    const id = await createScarce(berth);
    await berth.clock.advance(30 * MINUTE_MS);
    isDown = false;
    await berth.passUntil(`/instances/${id}`, 'ONLINE', 10 * MINUTE_MS);
    expect(berth.clock.now() - createdAt).toBeGreaterThanOrEqual(30 * MINUTE_MS);
    const [seconds] = Object.values(await samples(berth, 'berth_instance_online_seconds_sum'));
    expect(seconds).toBeLessThan(5 * 60);
  });

  it('tell why an instance failed [metrics-failed]', async () => {
    const refuses: Plan = ({ method }) =>
      method === 'create'
        ? { kind: 'misclaim', code: 'image_missing', sideEffect: 'none', isDone: false }
        : 'none';
    await using berth = await startPlainOrchestrator(refuses);
    const id = await createScarce(berth);
    await berth.passUntil(`/instances/${id}`, 'ERROR');
    await berth.clock.advance(MINUTE_MS);
    const failed = Object.entries(await samples(berth, 'berth_instances_failed_total'));
    expect(failed.filter(([, count]) => count > 0)).toEqual([
      ['berth_instances_failed_total{platform="default",cause="image_missing"}', 1],
    ]);
    expect(await samples(berth, 'berth_instance_online_seconds_count')).toEqual({});
  });

  it('tell what is sold of each offer in each region, and what could be [metrics-capacity]', async () => {
    await using berth = await startPlainOrchestrator();
    await createScarce(berth);
    await berth.clock.advance(MINUTE_MS);
    const labels = '{offer="h100-sxm-1x",region="eu-frankfurt"}';
    expect(await samples(berth, 'berth_offer_units')).toMatchObject({
      [`berth_offer_units${labels}`]: 3,
      [`berth_offer_units_claimed${labels}`]: 1,
      [`berth_offer_units_available${labels}`]: 2,
    });
    await berth.orchestrator.request('POST', '/volumes', {
      body: { name: 'data', size_gb: 100, region: 'eu-frankfurt' },
    });
    await berth.clock.advance(MINUTE_MS);
    expect(await samples(berth, 'berth_storage_claimed_gb')).toEqual({
      'berth_storage_claimed_gb{region="eu-frankfurt"}': 100,
    });
  });
});
