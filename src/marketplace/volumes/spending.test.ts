import { afterEach, beforeEach, expect, it } from 'vitest';
import { member, teamId, user } from '../../../test/support/rows/marketplace-rows.ts';
import type { ApiError } from '../contract/errors.ts';
import { adjust } from '../ledger/credit.ts';
import { defaultOptions, type MarketplaceOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import { attachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

/** 100 GB of provider-a, in micro-USD per hour. */
const HOUR_OF_100_GB = 27_400;

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

async function setBalance(amountMicroUsd: number): Promise<void> {
  const balance = (await world.deps.store.read.teams.byId(teamId))?.balanceMicroUsd ?? 0;
  if (balance !== amountMicroUsd)
    await adjust(world.deps, { teamId, amountMicroUsd: amountMicroUsd - balance, reason: 'test' });
}

function limitTo(teamLimits: Partial<MarketplaceOptions['spending']['teamLimits']>): void {
  const { spending } = defaultOptions;
  world.deps.options = {
    ...defaultOptions,
    spending: { ...spending, teamLimits: { ...spending.teamLimits, ...teamLimits } },
  };
}

const create = (changes = {}) => createVolume(world.deps, caller, bodyFor('a', changes) as never);
const refusalOf = (promise: Promise<unknown>) =>
  world.settle(promise).then(
    () => 'accepted',
    (error: ApiError) => error.details?.['reason'] ?? error.message,
  );

it('refuses a volume of 10 TB with a balance of one cent, and sends nothing', async () => {
  await setBalance(10_000);
  expect(await refusalOf(create({ sizeInGb: 10_000 }))).toBe('insufficient_balance');
  expect([world.writes(), await world.volumes()]).toEqual([[], []]);
});

it('creates no volume for a user who is removed from the team during the create [removed-within-volume-create]', async () => {
  const { store } = world.deps;
  const guest = user({ id: 'usr-guest' });
  await store.transact(async (tx) => {
    await tx.users.insert(guest);
    await tx.teams.putMember(member({ userId: guest.id, role: 'member' }));
  });
  const transact: Store['transact'] = async (body) => {
    await store.transact((tx) => tx.teams.removeMember(teamId, guest.id));
    return store.transact(body);
  };
  const late = { ...world.deps, store: { ...store, transact } };
  const body = bodyFor('a', { teamId }) as never;
  const made = world.settle(createVolume(late, { userId: guest.id }, body));
  await expect(made).rejects.toMatchObject({ code: 'FORBIDDEN' });
  expect([world.writes(), await world.volumes()]).toEqual([[], []]);
});

it('creates only as many volumes as the balance covers for an hour, where fifty are requested at once', async () => {
  await setBalance(4 * HOUR_OF_100_GB + 1_000);
  const asked = Array.from({ length: 50 }, (_, index) => refusalOf(create({ name: `data-${index}` })));
  const answers = await Promise.all(asked);
  expect(answers.filter((answer) => answer === 'accepted')).toHaveLength(4);
  expect(answers.filter((answer) => answer === 'insufficient_balance')).toHaveLength(46);
  expect(await world.volumes()).toHaveLength(4);
});

it('resizes a volume only where the balance covers an hour of its new size', async () => {
  const { volumeId } = await world.settle(create());
  const grow = (sizeInGb: number) => updateVolume(world.deps, caller, volumeId, { sizeInGb });
  await setBalance(2 * HOUR_OF_100_GB);
  expect(await refusalOf(grow(300))).toBe('insufficient_balance');
  await setBalance(3 * HOUR_OF_100_GB);
  // The accrued cost is deducted.
  expect(await refusalOf(grow(300))).toBe('insufficient_balance');
  await setBalance(3 * HOUR_OF_100_GB + 1_000);
  expect(await refusalOf(grow(300))).toBe('accepted');
});

it('begins one of two concurrent resizes where the balance covers one', async () => {
  const volumes = [await world.settle(create()), await world.settle(create({ name: 'more' }))];
  await setBalance(5 * HOUR_OF_100_GB);
  const answers = await Promise.all(
    volumes.map(({ volumeId }) => refusalOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 300 }))),
  );
  expect(answers.toSorted()).toEqual(['accepted', 'insufficient_balance']);
});

it('shows and bills a volume as it was last asked for, and tells operators of another size [volume-size-not-believed]', async () => {
  const { volumeId } = await world.settle(create());
  const { read } = world.deps.store;
  const plain = world.plain('a');
  const show = async (sizeGb: number) => {
    plain.setVolume(plain.volumes[0]?.id ?? '', { size_gb: sizeGb });
    for (let round = 0; round < 2; round++) await world.settle(world.sync('a'));
    const record = await read.volumes.byVolumeId(volumeId);
    const [others] = await read.volumes.countOfOtherSize();
    return [record?.sizeGb, (record?.rateMicroUsd ?? 0) / HOUR_OF_100_GB, others?.count ?? 0];
  };
  const grow = (sizeInGb: number) => world.codeOf(updateVolume(world.deps, caller, volumeId, { sizeInGb }));
  expect(await show(10_000)).toEqual([100, 1, 1]);
  expect(await show(50)).toEqual([100, 1, 1]);
  expect(await show(100 * 1024 ** 3)).toEqual([100, 1, 1]);
  const logged = world.logged.filter(({ message }) => message.includes('shows another size of a volume'));
  expect(logged.map(({ fields }) => [fields['volume'], fields['providerSizeGb']])).toEqual(
    [10_000, 50, 100 * 1024 ** 3].map((size) => [volumeId, size]),
  );
  expect(await show(100)).toEqual([100, 1, 0]);
  // A resize that is given up may take effect later.
  plain.faults.plan = (method) => (method === 'resizeVolume' ? 'lose' : 'none');
  expect(await grow(200)).toBe('PROVIDER_SLOW');
  expect(await show(150)).toEqual([150, 1.5, 0]);
  await world.clock.advance(world.deps.options.polling.actionMs);
  expect(await show(150)).toEqual([150, 1.5, 0]);
  expect(await show(10_000)).toEqual([200, 2, 1]);
  // What the provider has already needs no call.
  expect(await grow(300)).toBe('done');
  expect([await show(10_000), plain.faults.countOf('resizeVolume')]).toEqual([[300, 3, 1], 1]);
});

it('does not treat a size above the limit as the end of a resize', async () => {
  const { volumeId } = await world.settle(create());
  world.plain('a').faults.plan = (method) =>
    method === 'resizeVolume' || method === 'getVolume'
      ? { answer: (volume: object) => ({ ...volume, size_gb: 100 * 1024 ** 3 }) }
      : 'none';
  const asked = updateVolume(world.deps, caller, volumeId, { sizeInGb: 200 });
  expect(await world.codeOf(asked)).toBe('PROVIDER_SLOW');
  world.plain('a').faults.plan = () => 'none';
  await world.settle(world.sync('a'));
  const record = await world.deps.store.read.volumes.byVolumeId(volumeId);
  expect(record).toMatchObject({ sizeGb: 200, rateMicroUsd: 2 * HOUR_OF_100_GB, action: null });
});

it('attaches no volume of a team without balance, and attaches it once there is a balance', async () => {
  const { volumeId, region } = await world.settle(create());
  const { id } = await world.deploy('a', region);
  const attach = () => refusalOf(attachVolume(world.deps, caller, volumeId, id));
  await setBalance(0);
  expect(await attach()).toBe('insufficient_balance');
  expect(await world.deps.store.read.volumes.attachmentsOf({ deploymentId: id })).toEqual([]);
  await setBalance(1_000_000);
  expect(await attach()).toBe('accepted');
  await setBalance(0);
  // An existing attachment is kept.
  expect(await attach()).toBe('accepted');
});

it.each([
  [{ volumes: 2 }, 100],
  [{ volumeGb: 250 }, 100],
])('keeps a team to %j', async (limits, sizeInGb) => {
  limitTo(limits);
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((name) => refusalOf(create({ name, sizeInGb }))),
  );
  expect(answers.toSorted()).toEqual(['accepted', 'accepted', 'quota_exceeded']);
});

it('counts the added GB of a resize', async () => {
  limitTo({ volumeGb: 200 });
  const { volumeId } = await world.settle(create());
  expect(await refusalOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 201 }))).toBe(
    'quota_exceeded',
  );
  expect(await refusalOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 200 }))).toBe('accepted');
});
