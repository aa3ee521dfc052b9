import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { type Store, StoreUnavailable } from '../../model/store.ts';
import type { VolumeRecord } from '../../model/volume-record.ts';
import { createVolume } from '../../volumes/create.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { bodyFor, caller, openWorld, type World } from '../../volumes/seven-providers.fixture.ts';
import { contextOf } from '../worker.fixture.ts';
import { syncVolume } from './sync-volume.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const refused = new ProviderError('conflict', '409: no storage is left', {
  status: 409,
  code: 'capacity_unavailable',
});
const volume = async () => (await world.volumes())[0] as VolumeRecord;
const sync = async () => {
  for (let round = 0; round < 3; round++) {
    await world.settle(world.sync('a'));
    await world.clock.advance(2 * world.deps.options.polling.callTimeoutMs);
  }
};
/** Syncs the volumes in another process, which holds the lease from then on. */
const syncElsewhere = async () => {
  const worker = world.anotherWorker('a');
  for (let round = 0; round < 3; round++) {
    await world.settle(worker.syncVolumes());
    await world.clock.advance(5_000);
  }
};
const alarms = () => world.logged.filter(({ level }) => level === 'error').map(({ message }) => message);

/** A create whose call waits at the provider until `answer` is called. */
async function beginCreation(): Promise<{ answer: () => Promise<void> }> {
  const { deps } = world;
  let answer = (): void => undefined;
  const { client } = world.provider('a');
  const { createVolume: send } = client;
  const isFree = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let first = true;
  client.createVolume = async (...args) => {
    if (first) {
      first = false;
      await isFree;
    }
    return send.apply(client, args);
  };
  const creating = createVolume(deps, caller, bodyFor('a') as never).catch((error: unknown) => error);
  for (let turn = 0; turn < 20; turn++) await world.clock.advance(1);
  return {
    answer: async () => {
      answer();
      await world.settle(creating);
      await world.clock.advance(1);
    },
  };
}

/** Another server holds the lease and finds the create unanswered, at a provider without idempotency keys. */
async function giveUp(): Promise<void> {
  for (const offer of world.provider('a').catalog.offers.values()) Object.assign(offer, { extras: {} });
  await world.clock.advance(2 * world.deps.options.polling.callTimeoutMs);
  await world.loseLease('a');
  await world.anotherWorker('a').syncVolumes();
  expect((await volume()).status).toBe('error');
}

it('a volume whose create another server gave up before it was answered is deleted at the provider [volume-made-after-lease]', async () => {
  const { answer } = await beginCreation();
  await giveUp();
  await answer();
  expect(world.plain('a').volumes).toHaveLength(1);
  await syncElsewhere();
  expect([world.plain('a').volumes, (await volume()).status]).toEqual([[], 'deleted']);
});

it('a late volume that its user has deleted is deleted too, and the user sees it as deleted all the time', async () => {
  const { answer } = await beginCreation();
  await giveUp();
  await deleteVolume(world.deps, caller, (await volume()).volumeId);
  await answer();
  expect(await volume()).toMatchObject({ status: 'deleted', cleanup: 'wanted' });
  await syncElsewhere();
  expect(world.plain('a').volumes).toEqual([]);
  expect(await volume()).toMatchObject({ status: 'deleted', cleanup: 'done', totalCostMicroUsd: 0 });
});

it('a second volume of one create is logged, with both ids', async () => {
  const { answer } = await beginCreation();
  await world.anotherWorker('a').syncVolumes();
  const { providerVolumeId } = await volume();
  world.plain('a').faults.plan = (method) =>
    method === 'createVolume' ? { answer: (made: object) => ({ ...made, id: 'another' }) } : 'none';
  await answer();
  expect(world.logged.find(({ level }) => level === 'error')).toMatchObject({
    message: expect.stringContaining('a second volume for one create'),
    fields: { providerVolumeId: 'another', recorded: providerVolumeId },
  });
});

describe('the id of a volume that was made, while the database does not answer', () => {
  /** A worker sends the create, and this many writes of the id fail. */
  async function makeDuringOutage(failures: number): Promise<unknown> {
    const { answer } = await beginCreation();
    let left = failures;
    const unfenced: Store = {
      ...world.deps.store,
      transact: async (body) => {
        if (left-- > 0) throw new StoreUnavailable('it is away');
        return world.deps.store.transact(body);
      },
    };
    const context = { ...contextOf(world.deps, world.provider('a')), unfenced };
    const outcome = await world.settle(syncVolume(context, (await volume()).id)).catch((error) => error);
    const { providerVolumeId } = await volume();
    await answer();
    return outcome instanceof Error ? outcome : providerVolumeId;
  }

  it('is written once it answers again', async () => {
    const providerVolumeId = await makeDuringOutage(4);
    expect(providerVolumeId).toBe(world.plain('a').volumes[0]?.id);
    expect(alarms().join()).not.toContain('could not write the id');
  });

  it('is logged with what to do if the database stays silent for long', async () => {
    expect(await makeDuringOutage(5)).toBeInstanceOf(StoreUnavailable);
    expect(world.logged.find(({ level }) => level === 'error')).toMatchObject({
      message: expect.stringContaining('could not write the id of a volume that the provider made'),
      fields: { provider: 'provider-a', providerVolumeId: world.plain('a').volumes[0]?.id },
    });
  });
});

it('a create that is repeated and refused is not over while its first request may still arrive', async () => {
  const { polling } = world.deps.options;
  world.plain('a').faults.plan = (method, nth) => {
    if (method !== 'createVolume') return 'none';
    // The first request reaches the provider after its repetition was refused.
    return nth === 1 ? { lateMs: polling.callTimeoutMs + 5_000 } : { error: refused };
  };
  const made = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never));
  expect(made.status).toBe('creating');
  const [first] = world.plain('a').volumes;
  // The provider recognises the create by its key.
  world.plain('a').faults.plan = (method) => (method === 'createVolume' ? { instead: first } : 'none');
  await world.clock.advance(2 * polling.callTimeoutMs);
  await sync();
  expect([(await volume()).status, world.plain('a').volumes.length]).toEqual(['available', 1]);
});

it('a repeated and refused create is over once no earlier request can arrive any more', async () => {
  const { polling } = world.deps.options;
  world.plain('a').faults.plan = (method, nth) =>
    method !== 'createVolume' ? 'none' : nth === 1 ? 'lose' : { error: refused };
  await world.settle(createVolume(world.deps, caller, bodyFor('a') as never));
  expect((await volume()).status).toBe('creating');
  await world.clock.advance(2 * polling.callTimeoutMs);
  await sync();
  expect([(await volume()).status, alarms()]).toEqual(['deleted', []]);
});

it('a create that makes a volume whose id cannot be used ends as an error, and an alarm names the volume', async () => {
  world.plain('a').faults.plan = (method) =>
    method === 'createVolume' ? { answer: (made: object) => ({ ...made, id: 'v\0' }) } : 'none';
  expect(await world.codeOf(createVolume(world.deps, caller, bodyFor('a') as never))).toBe(
    'PROVIDER_REFUSED',
  );
  expect(await volume()).toMatchObject({ status: 'error', providerVolumeId: null, startedAt: null });
  expect(world.logged.filter(({ level }) => level === 'error')).toMatchObject([
    {
      message: expect.stringContaining('delete it there'),
      fields: { provider: 'provider-a', providerVolumeId: 'v\0', name: (await volume()).providerName },
    },
  ]);
});

describe('a create that is answered with the volume of another one', () => {
  const create = () => createVolume(world.deps, caller, bodyFor('a') as never);
  const answerWith = (made: ProviderVolume) => {
    world.plain('a').faults.plan = (method) => (method === 'createVolume' ? { instead: made } : 'none');
  };
  const statuses = async () => (await world.volumes()).map(({ status }) => status);
  const duplicates = () =>
    alarms().filter((message) => message.includes('with the volume of another create'));

  it.each([
    ['by its id [shared-volume-answer]', 'data'],
    ['by its id and its name [shared-volume-named]', undefined],
  ])('ends as an error that costs nothing, and the other volume is kept: %s', async (_, name) => {
    const first = await world.settle(create());
    const made = structuredClone(world.plain('a').volumes[0]) as ProviderVolume;
    answerWith({ ...made, ...(name !== undefined && { name }) });
    await world.clock.advance(1);
    expect(await world.codeOf(create())).toBe('PROVIDER_REFUSED');
    const second = await volume();
    expect(second).toMatchObject({ status: 'error', action: null, providerVolumeId: null, startedAt: null });
    expect(duplicates()).toHaveLength(1);
    world.plain('a').faults.plan = () => 'none';
    expect(await world.codeOf(deleteVolume(world.deps, caller, second.volumeId))).toBe('done');
    await sync();
    expect([await statuses(), world.plain('a').volumes]).toMatchObject([
      ['deleted', 'available'],
      [{ id: made.id, status: 'AVAILABLE' }],
    ]);
    expect(await world.codeOf(deleteVolume(world.deps, caller, first.volumeId))).toBe('done');
    await sync();
    expect([await statuses(), world.plain('a').volumes]).toEqual([['deleted', 'deleted'], []]);
  });

  it('ends so also where the other create has not got its own answer yet [shared-volume-early]', async () => {
    world.plain('a').faults.plan = (method, nth) =>
      method !== 'createVolume' ? 'none' : nth === 1 ? 'commit-then-lose' : 'lose';
    await world.settle(create());
    const [made] = world.plain('a').volumes as [ProviderVolume];
    const [first] = await world.volumes();
    world.plain('a').faults.plan = (method, _, { args: [, key] }) => {
      if (method !== 'createVolume') return 'none';
      return key === first?.id ? 'lose' : { instead: made };
    };
    const second = await world.codeOf(create());
    expect([second, await statuses()]).toEqual(['PROVIDER_REFUSED', ['error', 'creating']]);
    // The provider recognises the first create by its key.
    answerWith(made);
    await sync();
    expect([await statuses(), world.plain('a').volumes.length]).toEqual([['error', 'available'], 1]);
  });

  it('deletes nothing at the provider where it was given up before', async () => {
    await world.settle(create());
    await world.clock.advance(1);
    const { answer } = await beginCreation();
    await giveUp();
    answerWith({ ...(world.plain('a').volumes[0] as ProviderVolume), name: 'data' });
    await answer();
    await syncElsewhere();
    expect([await statuses(), duplicates().length]).toEqual([['error', 'available'], 1]);
    expect(world.plain('a').volumes).toHaveLength(1);
  });
});
