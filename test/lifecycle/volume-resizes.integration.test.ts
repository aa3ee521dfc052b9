import { describe, expect, it } from 'vitest';
import { LISTED_MS, type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

type Options = Parameters<typeof startPlainOrchestrator>[1];

/** With one AVAILABLE volume of 100 GB of type nvme. */
async function startWithVolume(options: Options = {}, changes: Record<string, unknown> = {}) {
  const setup = await startPlainOrchestrator(() => 'none', options);
  const id = await setup.createVolume({ size_gb: 100, type: 'nvme', ...changes });
  await setup.passUntil(`/volumes/${id}`, 'AVAILABLE');
  const { ownerRef: ref = '' } = (await setup.orchestrator.store.read.volumes.byId(id)) ?? {};
  const read = () => setup.read(`/volumes/${id}`);
  return {
    setup,
    id,
    ref,
    read,
    resize: (size_gb: unknown) => setup.post(`/x/volumes/${id}/resize`, { size_gb }),
    sizeThere: () => setup.platform.volumes.get(ref)?.sizeGb,
    settle: async () => {
      for (let tenths = 0; (await setup.orchestrator.store.read.work.of(id)) !== null; tenths++) {
        if (tenths > 8_000) throw new Error('it never ends');
        await setup.clock.advance(100);
      }
      return read();
    },
    [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose](),
  };
}

const outcome = ({ status, body }: { status: number; body: Record<string, unknown> }) => [
  status,
  (body['error'] as { code?: string } | undefined)?.code,
];

describe('a resize', () => {
  it('is accepted, and the volume reads its new size and price once the platform has carried it out', async () => {
    await using given = await startWithVolume();
    const before = await given.read();
    given.setup.setPlan(({ method }) => (method === 'volumes.resize' ? { kind: 'late', ms: 5_000 } : 'none'));
    const reply = await given.resize(250);
    expect([reply.status, reply.body]).toEqual([200, before]);
    await given.setup.clock.advance(2_000);
    expect(await given.read()).toEqual(before);
    expect(await given.settle()).toEqual({
      ...before,
      size_gb: 250,
      price_per_hour: 2.5 * Number(before['price_per_hour']),
    });
    expect(given.sizeThere()).toBe(250);
  });

  it.each<[string, Plan]>([
    ['whose order does not arrive', (_call, nth) => (nth < 3 ? 'fail-before' : 'none')],
    ['whose answer is lost', (_call, nth) => (nth < 3 ? 'fail-after' : 'none')],
    ['whose answer is late', (_call, nth) => (nth === 1 ? { kind: 'delay', ms: 60_000 } : 'none')],
  ])('%s is carried out [resize-once]', async (_title, plan) => {
    await using given = await startWithVolume();
    given.setup.setPlan((call, nth) => (call.method === 'volumes.resize' ? plan(call, nth) : 'none'));
    await given.resize(250);
    expect([(await given.settle())['size_gb'], given.sizeThere()]).toEqual([250, 250]);
  });

  it('that is broken off after its order was sent goes on', async () => {
    let breaks = 2;
    await using given = await startWithVolume({
      failpoint: (name) => {
        if (name === 'resize:after-call' && breaks-- > 0) throw new Error('broken off by the test');
      },
    });
    await given.resize(250);
    expect([(await given.settle())['size_gb'], given.setup.count('volumes.resize')]).toEqual([250, 3]);
  });

  it('that the platform refuses leaves the volume as it was, and can be asked for again', async () => {
    await using given = await startWithVolume();
    const before = await given.read();
    given.setup.setPlan(({ method }) =>
      method === 'volumes.resize'
        ? { kind: 'misclaim', code: 'capacity', sideEffect: 'none', isDone: false }
        : 'none',
    );
    await given.resize(250);
    expect([await given.settle(), given.setup.count('volumes.resize')]).toEqual([before, 1]);
    given.setup.setPlan(() => 'none');
    expect((await given.resize(250)).status).toBe(200);
    expect((await given.settle())['size_gb']).toBe(250);
  });

  it('that the platform claims to have refused, and has carried out, is seen [resize-refused-but-done]', async () => {
    await using given = await startWithVolume();
    given.setup.setPlan(({ method }) =>
      method === 'volumes.resize'
        ? { kind: 'misclaim', code: 'quota', sideEffect: 'certain', isDone: true }
        : 'none',
    );
    await given.resize(250);
    expect((await given.settle())['size_gb']).toBe(250);
  });

  it('that the platform calls done, and shows as not done, is asked for until it is', async () => {
    let lies = 2;
    await using given = await startWithVolume({
      wrapDriver: ({ volumes, ...driver }) => ({
        ...driver,
        ...(volumes !== undefined && {
          volumes: {
            ...volumes,
            resize: async (ref, sizeGb, cookie) => {
              const shown = await volumes.get(ref);
              if (lies-- > 0 && shown.answer === 'observed') return { outcome: 'done', value: shown.value };
              return volumes.resize(ref, sizeGb, cookie);
            },
          },
        }),
      }),
    });
    await given.resize(250);
    expect([(await given.settle())['size_gb'], given.sizeThere()]).toEqual([250, 250]);
  });

  it('that never succeeds is given up in the end, and what was asked of the volume meanwhile is done [resize-given-up]', async () => {
    await using given = await startWithVolume();
    const { setup, id } = given;
    const instance = await setup.create();
    await setup.passUntil(`/instances/${instance}`, 'ONLINE');
    setup.setPlan(({ method }) => (method === 'volumes.resize' ? 'fail-before' : 'none'));
    await given.resize(250);
    expect((await setup.post(`/volumes/${id}/attach`, { instance_ids: [instance] })).status).toBe(200);
    await setup.clock.advance(60_000);
    expect((await given.read())['status']).toBe('ATTACHING');
    const tookMs = await setup.passUntil(`/volumes/${id}`, 'ATTACHED', 700_000);
    expect(tookMs).toBeGreaterThan(400_000);
    expect(await given.settle()).toMatchObject({ size_gb: 100, attached_instance_ids: [instance] });
  });

  it('that the platform is at for longer than it has stays claimed until it is done [resize-in-progress-claimed]', async () => {
    const begunAt: number[] = [];
    await using given = await startWithVolume({
      wrapDriver: ({ volumes, ...driver }) => ({
        ...driver,
        ...(volumes !== undefined && {
          volumes: {
            ...volumes,
            resize: async (ref, sizeGb, cookie) => {
              const now = given.setup.clock.now();
              begunAt.push(now);
              if (now < (begunAt[0] ?? now) + 660_000)
                return { outcome: 'pending', cookie: 'growing', pollAfterMs: 30_000 };
              return volumes.resize(ref, sizeGb, cookie);
            },
          },
        }),
      }),
    });
    const { setup, id } = given;
    await given.resize(250);
    await setup.clock.advance(630_000);
    expect(await setup.orchestrator.store.read.storageClaims.heldBy(id)).toBe(250);
    expect([(await given.settle())['size_gb'], given.sizeThere()]).toEqual([250, 250]);
  });

  it('that was given up and is carried out after all is told and claimed [resize-done-after-giving-up]', async () => {
    await using given = await startWithVolume();
    const { setup, id, ref } = given;
    setup.setPlan(({ method }) =>
      method === 'volumes.resize'
        ? { kind: 'misclaim', code: 'capacity', sideEffect: 'none', isDone: false }
        : 'none',
    );
    const before = await given.read();
    await given.resize(250);
    expect(await given.settle()).toEqual(before);
    await setup.platform.driver.volumes.resize(ref, 250, null);
    await setup.clock.advance(2 * LISTED_MS);
    expect(await given.read()).toEqual({
      ...before,
      size_gb: 250,
      price_per_hour: 2.5 * Number(before['price_per_hour']),
    });
    expect(await setup.orchestrator.store.read.storageClaims.heldBy(id)).toBe(250);
  });

  it('of an attached volume keeps it attached, where the platform can', async () => {
    await using given = await startWithVolume();
    const instance = await given.setup.create();
    await given.setup.passUntil(`/instances/${instance}`, 'ONLINE');
    await given.setup.post(`/volumes/${given.id}/attach`, { instance_ids: [instance] });
    await given.setup.passUntil(`/volumes/${given.id}`, 'ATTACHED');
    await given.settle();
    expect((await given.resize(250)).status).toBe(200);
    expect(await given.settle()).toMatchObject({ status: 'ATTACHED', size_gb: 250 });
    expect(given.setup.platform.volumes.get(given.ref)?.attachedTo).toHaveLength(1);
  });

  it('loses against a DELETE of its volume', async () => {
    await using given = await startWithVolume();
    given.setup.setPlan(({ method }) => (method === 'volumes.resize' ? 'hang' : 'none'));
    await given.resize(250);
    await given.setup.clock.advance(500);
    expect((await given.setup.orchestrator.request('DELETE', `/volumes/${given.id}`)).status).toBe(204);
    await given.setup.passUntil(`/volumes/${given.id}`, 'GONE');
    expect(given.setup.platform.volumes.size).toBe(0);
  });
});

describe('a resize is refused', () => {
  it('to less than there is, to more than the type has, and to what is no size; the same size is success', async () => {
    await using given = await startWithVolume();
    for (const size of [99.5, 16_001, 0, -1, '200', undefined]) {
      const reply = await given.resize(size);
      expect([size, ...outcome(reply)]).toEqual([size, 400, 'invalid_request']);
      expect(reply.text).toContain('size_gb');
    }
    expect(outcome(await given.resize(100))).toEqual([200, undefined]);
    expect(given.setup.count('volumes.resize')).toBe(0);
    expect((await given.resize(16_000)).status).toBe(200);
  });

  it('while the volume is made, resized or on its way', async () => {
    await using given = await startWithVolume();
    const { setup } = given;
    setup.setPlan(({ method }) =>
      method === 'volumes.resize' || method === 'volumes.create' || method === 'volumes.destroy'
        ? 'hang'
        : 'none',
    );
    await given.resize(250);
    expect(outcome(await given.resize(250))).toEqual([409, 'operation_in_progress']);
    const young = await setup.createVolume();
    expect(outcome(await setup.post(`/x/volumes/${young}/resize`, { size_gb: 250 }))).toEqual([
      409,
      'operation_in_progress',
    ]);
    await setup.orchestrator.request('DELETE', `/volumes/${given.id}`);
    expect(outcome(await given.resize(250))).toEqual([409, 'invalid_state']);
  });

  it('where the platform cannot, which every offer says', async () => {
    await using given = await startWithVolume({ manifest: { resizeVolume: 'none' } });
    expect(outcome(await given.resize(250))).toEqual([409, 'resize_unsupported']);
    const { configurations } = (await given.setup.read('/configurations')) as {
      configurations: { extras: { berth: object } }[];
    };
    for (const { extras } of configurations) expect(extras.berth).toMatchObject({ volume_resize: false });
  });

  it('while it is attached, where the platform cannot resize it so', async () => {
    await using given = await startWithVolume({ manifest: { resizeVolume: 'detached' } });
    const instance = await given.setup.create();
    await given.setup.passUntil(`/instances/${instance}`, 'ONLINE');
    await given.setup.post(`/volumes/${given.id}/attach`, { instance_ids: [instance] });
    await given.setup.passUntil(`/volumes/${given.id}`, 'ATTACHED');
    await given.settle();
    expect(outcome(await given.resize(250))).toEqual([409, 'volume_attached']);
    expect(given.setup.count('volumes.resize')).toBe(0);
  });
});
