import { afterEach, beforeEach, expect, it } from 'vitest';
import { LeaseLost } from '../../../work/lease.ts';
import { StoreUnavailable } from '../../model/store.ts';
import { createVolume } from '../create.ts';
import { bodyFor, caller, openWorld, type World } from '../seven-providers.fixture.ts';
import { syncVolumes } from './sync-volumes.ts';

let world: World;
let ids: string[];
beforeEach(async () => {
  world = await openWorld();
  for (const name of ['one', 'two', 'three'])
    await world.settle(createVolume(world.deps, caller, bodyFor('a', { name }) as never));
  ids = (await world.volumes()).map(({ id }) => id);
  await world.deps.store.transact(async (tx) => {
    for (const id of ids) {
      const record = await tx.volumes.byId(id);
      if (record !== null) await tx.volumes.update({ ...record, action: { kind: 'detach', since: 0 } });
    }
  });
});
afterEach(() => world.close());

/** Reading the first volume fails so. */
function failFor(error: Error): void {
  const { volumes } = world.deps.store.read;
  const { byId } = volumes;
  volumes.byId = (id) => (id === ids[0] ? Promise.reject(error) : byId(id));
}

const sync = () => world.settle(syncVolumes(world.deps, world.provider('a')));
const told = () => world.logged.filter(({ level }) => level === 'error');
const looked = () => world.plain('a').faults.calls.filter(({ method }) => method === 'getVolume').length;

it('tells of a volume that fails by a fault of ours, and goes on with the others', async () => {
  failFor(new Error('a fault of ours'));
  const before = looked();
  await sync();
  expect(told()).toMatchObject([{ fields: { provider: 'provider-a' } }]);
  expect(looked() - before).toBe(2);
});

it.each([new LeaseLost('provider:provider-a'), new StoreUnavailable('it does not answer')])(
  'leaves it to its worker to tell once of %s, when the others have had their turn',
  async (error) => {
    failFor(error);
    const before = looked();
    await expect(sync()).rejects.toBe(error);
    expect(told()).toEqual([]);
    expect(looked() - before).toBe(2);
  },
);
