import { describe, expect, it } from 'vitest';
import type { OwnerRef, Presence, Step } from '../../src/orchestrator/model/platform-driver.ts';
import { plainEndpoint } from '../support/doubles/plain-platform.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';

const VISIBLE_MS = 3_000;
/** A listing that takes longer than the platform may hide what it has made. */
const LISTING_MS = 4_000;

const gone = {
  outcome: 'failed',
  code: 'gone',
  sideEffect: 'none',
  detail: 'the platform does not show it',
} as const satisfies Step<never>;

type Method = 'stop' | 'start' | 'restart' | 'destroy' | 'attach' | 'detach' | 'resize';

/**
 * A platform that does not show what it made within the last three seconds, neither to a look nor in a listing, and
 * whose listings take longer than that. The methods of `deaf` do not know what is hidden, either.
 */
async function startHiding(deaf: readonly Method[]) {
  const berth = await startPlainOrchestrator(() => 'none', {
    manifest: { createVisibleWithinMs: VISIBLE_MS },
    reconcile: { watchIntervalMs: 300_000 },
  });
  const { clock, platform } = berth;
  const { driver } = platform;
  const endpoint = { ...plainEndpoint, hostKeyFingerprint: 'SHA256:plain' };
  const create = driver.create;
  // The key that comes with the address: ONLINE is proved without a look at the platform.
  driver.create = async (spec, cookie) => {
    const step = await create(spec, cookie);
    if (step.outcome !== 'done') return step;
    return { outcome: 'done', value: platform.change(spec.ref, { endpoint }) };
  };
  const isShown = (item: { createdAt: number } | undefined): boolean =>
    item === undefined || clock.now() >= item.createdAt + VISIBLE_MS;
  const wait = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve));

  interface Looks {
    get(ref: OwnerRef): Promise<Presence<{ createdAt: number }>>;
    list(): Promise<unknown>;
  }
  const hide = (of: object, items: () => ReadonlyMap<OwnerRef, { createdAt: number }>): void => {
    const looks = of as Looks;
    const { get } = looks;
    looks.get = async (ref) => (isShown(items().get(ref)) ? get(ref) : { answer: 'gone' });
    looks.list = async () => {
      const shown = [...items().values()].filter(isShown);
      await wait(LISTING_MS);
      return { answer: 'listed', items: shown };
    };
    const calls = of as unknown as Record<string, (ref: OwnerRef, ...rest: unknown[]) => Promise<unknown>>;
    for (const method of deaf) {
      const call = calls[method];
      if (call === undefined) continue;
      calls[method] = async (ref, ...rest) => (isShown(items().get(ref)) ? call(ref, ...rest) : gone);
    }
  };
  hide(driver, () => platform.machines);
  hide(driver.volumes, () => platform.volumes);

  return {
    ...berth,
    /** Lets time pass, and calls `seen` at each moment. */
    async pass(ms: number, seen: () => Promise<void>): Promise<void> {
      for (const endAt = clock.now() + ms; clock.now() < endAt; ) {
        await clock.advance(100);
        await seen();
      }
    },
    [Symbol.asyncDispose]: () => berth[Symbol.asyncDispose](),
  };
}

type Hiding = Awaited<ReturnType<typeof startHiding>>;

async function online(berth: Hiding): Promise<string> {
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE', 1_000);
  return id;
}

const statusOf = async (berth: Hiding, path: string) => String((await berth.read(path))['status']);

describe('an instance that is ONLINE before the platform shows its machine keeps the machine:', () => {
  it.each([
    ['a stop', ['stop'], ['stop'], 'STOPPED'],
    ['a start', ['start'], ['stop', 'start'], 'ONLINE'],
    ['a restart', ['restart'], ['restart'], 'ONLINE'],
  ] as const)('%s [online-before-shown]', async (_name, deaf, asked, wanted) => {
    await using berth = await startHiding(deaf);
    const id = await online(berth);
    const path = `/instances/${id}`;
    for (const action of asked) {
      if (action === 'start') await berth.passUntil(path, 'STOPPED', 1_000);
      const beyond = action === 'restart' ? `/x${path}` : path;
      expect((await berth.post(`${beyond}/${action}`)).status).toBeLessThan(300);
    }
    const seen = new Set<string>();
    await berth.pass(40_000, async () => {
      seen.add(await statusOf(berth, path));
    });
    expect([...seen].filter((status) => ['ERROR', 'OFFLINE', 'DESTROYING', 'GONE'].includes(status))).toEqual(
      [],
    );
    expect([await statusOf(berth, path), berth.count('destroy')]).toEqual([wanted, 0]);
    expect([...berth.platform.machines.values()]).toMatchObject([
      { power: wanted === 'ONLINE' ? 'running' : 'stopped' },
    ]);
  });

  it('a listing that lacks it [online-before-listed]', async () => {
    await using berth = await startHiding([]);
    const id = await online(berth);
    await berth.orchestrator.store.transact((tx) =>
      tx.work.put({
        resourceId: id,
        resourceKind: 'instance',
        kind: 'observe',
        notBefore: berth.clock.now(),
        deadlineAt: null,
      }),
    );
    const seen = new Set<string>();
    await berth.pass(30_000, async () => {
      seen.add(await statusOf(berth, `/instances/${id}`));
    });
    expect([[...seen], berth.platform.machines.size]).toEqual([['ONLINE'], 1]);
  });
});

describe('a DELETE before the platform shows the resource reads 404 only when it is gone:', () => {
  it('of an instance that is ONLINE [delete-before-shown-online]', async () => {
    await using berth = await startHiding(['destroy']);
    const { destroy } = berth.platform.driver;
    berth.platform.driver.destroy = async (ref, cookie) => {
      const step = await destroy(ref, cookie, anOrder);
      return step.outcome === 'failed' ? { outcome: 'done', value: null } : step;
    };
    const path = `/instances/${await online(berth)}`;
    await berth.orchestrator.request('DELETE', path);
    await berth.pass(40_000, async () => {
      if ((await statusOf(berth, path)) === 'GONE') expect(berth.platform.machines.size).toBe(0);
    });
    expect(await statusOf(berth, path)).toBe('GONE');
  });

  it('of a volume that is AVAILABLE [delete-before-shown-volume]', async () => {
    await using berth = await startHiding(['destroy']);
    const path = `/volumes/${await berth.createVolume()}`;
    await berth.passUntil(path, 'AVAILABLE', 1_000);
    await berth.orchestrator.request('DELETE', path);
    await berth.pass(40_000, async () => {
      if ((await statusOf(berth, path)) === 'GONE') expect(berth.platform.volumes.size).toBe(0);
    });
    expect(await statusOf(berth, path)).toBe('GONE');
  });

  it('of a volume whose create was answered to a server with a clock that is behind [delete-before-shown-clock-behind]', async () => {
    await using berth = await startHiding(['destroy']);
    const id = await berth.createVolume();
    const path = `/volumes/${id}`;
    await berth.passUntil(path, 'AVAILABLE', 1_000);
    await berth.orchestrator.store.transact(async (tx) => {
      const row = await tx.volumes.byId(id);
      if (row === null || row.createOpenUntil === null) throw new Error('it was shown already');
      await tx.volumes.update({ ...row, createOpenUntil: row.createOpenUntil - 2_000 });
    });
    await berth.clock.advance(1_500);
    await berth.orchestrator.request('DELETE', path);
    await berth.pass(40_000, async () => {
      if ((await statusOf(berth, path)) === 'GONE') expect(berth.platform.volumes.size).toBe(0);
    });
    expect(await statusOf(berth, path)).toBe('GONE');
  });
});

describe('a volume that the platform does not show yet', () => {
  it('is not taken for detached [volume-not-shown-detach]', async () => {
    await using berth = await startHiding(['detach']);
    const machine = await online(berth);
    const path = `/volumes/${await berth.createVolume({ instance_ids: [machine] })}`;
    await berth.passUntil(path, 'ATTACHED', 1_000);
    await berth.post(`${path}/detach`);
    await berth.pass(40_000, async () => {
      const [volume] = [...berth.platform.volumes.values()];
      if ((await statusOf(berth, path)) === 'AVAILABLE') expect(volume?.attachedTo).toEqual([]);
    });
    expect(await statusOf(berth, path)).toBe('AVAILABLE');
  });

  it('is attached, once it is shown [volume-not-shown-attach]', async () => {
    await using berth = await startHiding(['attach']);
    const machine = await online(berth);
    const path = `/volumes/${await berth.createVolume({ instance_ids: [machine] })}`;
    await berth.pass(40_000, async () => expect(await statusOf(berth, path)).toMatch(/^(CREATING|ATTACH)/));
    expect(await statusOf(berth, path)).toBe('ATTACHED');
  });

  it('gets the size that was asked for, once it is shown [volume-not-shown-resize]', async () => {
    await using berth = await startHiding(['resize']);
    const id = await berth.createVolume({ size_gb: 50 });
    await berth.passUntil(`/volumes/${id}`, 'AVAILABLE', 1_000);
    expect((await berth.post(`/x/volumes/${id}/resize`, { size_gb: 80 })).status).toBeLessThan(300);
    await berth.pass(40_000, async () => undefined);
    expect((await berth.read(`/volumes/${id}`))['size_gb']).toBe(80);
  });
});

it('a DELETE of what the platform has shown waits for nothing', async () => {
  await using berth = await startPlainOrchestrator(() => 'none', {
    manifest: { createVisibleWithinMs: 240_000 },
  });
  const instance = `/instances/${await berth.create()}`;
  const volume = `/volumes/${await berth.createVolume()}`;
  const before = await berth.orchestrator.request('GET', instance);
  await berth.clock.advance(12_000);
  expect((await berth.orchestrator.request('GET', instance)).body).toMatchObject({
    id: before.body['id'],
    status: 'ONLINE',
  });
  for (const path of [instance, volume]) {
    await berth.orchestrator.request('DELETE', path);
    expect(await berth.passUntil(path, 'GONE')).toBeLessThan(5_000);
  }
});
