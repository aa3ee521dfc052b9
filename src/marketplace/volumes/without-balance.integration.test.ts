import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { systemRandom } from '../../runtime/system.ts';
import { createEnforcement } from '../deployments/enforcement.ts';
import { realTimeBalance } from '../ledger/balance.ts';
import { BillingJob } from '../ledger/billing-job.ts';
import { adjust, topUp } from '../ledger/credit.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';
import type { Enforcement } from '../ledger/zero-balance.ts';
import { defaultOptions } from '../model/options.ts';
import { attachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';

const HOUR = 3_600_000;
/** A shorter day, so that these tests need fewer billing rounds. */
const DAY = 4 * HOUR;

let world: World;
let job: BillingJob;
let volumeId: string;
let exhaustedAt: number;

beforeEach(async () => {
  world = await openWorld();
  world.deps.random = systemRandom;
  const { billing } = defaultOptions;
  const volumes = { keepMs: 7 * DAY, noticesMs: [3 * DAY, DAY] };
  world.deps.options = {
    ...defaultOptions,
    billing: { ...billing, zeroBalance: { ...billing.zeroBalance, volumes } },
  };
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never)));
  job = new BillingJob({ ...world.deps, enforce: createEnforcement(world.deps) });
});
afterEach(async () => {
  await world.settle(job.stop());
  await world.close();
});

const stored = () => world.deps.store.read.volumes.byVolumeId(volumeId);
const truly = () => world.plain('a').volumes;
const mails = async () =>
  (await world.deps.store.read.mail.list({ limit: 100 }))
    .filter(({ kind }) => kind.startsWith('volumes_'))
    .toReversed();

async function exhaust(): Promise<void> {
  const { store, clock } = world.deps;
  const balance = await realTimeBalance(store.read, teamId, clock.now());
  await adjust(world.deps, { teamId, amountMicroUsd: -balance, reason: 'test' });
  await round();
  await round();
  exhaustedAt = (await watch()).exhaustedAt ?? Number.NaN;
}

async function watch() {
  const team = await world.deps.store.read.teams.byId(teamId);
  if (team === null) throw new Error('there is a team');
  return team.watch;
}

/** Runs a billing round and the work that it starts, until the next round is due. */
async function round(): Promise<void> {
  await world.settle(job.run());
  for (let half = 0; half < 60; half++) await world.clock.advance(500);
}

/** Runs a billing round every hour until `at`, and then the provider's worker. */
async function passUntil(at: number): Promise<void> {
  while (world.clock.now() < at) {
    await world.clock.advance(Math.min(HOUR, at - world.clock.now()));
    await world.settle(job.run());
  }
  for (let second = 0; second < 20; second++) await world.clock.advance(500);
  await world.settle(world.sync('a'));
}

async function expectRightBooks(): Promise<void> {
  const { findings } = await verifyLedger(world.deps.store, world.clock.now() + HOUR);
  expect(findings).toEqual([]);
}

it('a volume without balance is announced at zero, three days and one day before, and is deleted seven days after, ended by proof', async () => {
  world.plain('a').options.volumeMs = HOUR;
  await exhaust();
  const [first] = await mails();
  const deleteAt = (await watch()).volumesDeleteAt ?? 0;
  expect(deleteAt).toBe(exhaustedAt + 7 * DAY);
  expect(first).toMatchObject({
    class: 'billing',
    kind: 'volumes_frozen',
    to: 'usr-1@example.com',
    subject: `The volumes of Team team-1 are deleted at ${new Date(deleteAt).toISOString()}`,
    text: expect.stringContaining(`- data (${volumeId}), 100 GB`),
  });
  await passUntil(deleteAt - 1);
  expect(await stored()).toMatchObject({ status: 'available', action: null });
  expect((await mails()).map(({ createdAt }) => Math.round((deleteAt - createdAt) / DAY))).toEqual([7, 3, 1]);

  await passUntil(deleteAt + 60_000);
  expect(await stored()).toMatchObject({ status: 'deleting', cleanup: 'wanted' });
  expect((await mails()).map(({ kind }) => kind)).toEqual([
    ...['volumes_frozen', 'volumes_frozen', 'volumes_frozen', 'volumes_deleted'],
  ]);
  expect(truly()).toHaveLength(1);
  await world.clock.advance(HOUR);
  await world.settle(world.sync('a'));
  expect([truly(), (await stored())?.status]).toEqual([[], 'deleted']);
  const cost = (await stored())?.totalCostMicroUsd;
  await passUntil(world.clock.now() + 2 * DAY);
  expect((await stored())?.totalCostMicroUsd).toBe(cost);
  await expectRightBooks();
});

it('a volume without balance is not deleted at once by the first start after a long time, however long the balance was used up', async () => {
  await exhaust();
  const unnoticed = { ...(await watch()), volumesDeleteAt: null, volumesNoticeMs: null };
  await world.deps.store.transact(async (tx) => {
    const team = await tx.teams.byId(teamId);
    if (team !== null)
      await tx.teams.update({ ...team, watch: { ...unnoticed, exhaustedAt: exhaustedAt - 90 * DAY } });
  });
  const startedAt = world.clock.now();
  job = new BillingJob({ ...world.deps, enforce: createEnforcement(world.deps) });
  await world.clock.advance(2 * 60_000);
  await passUntil(startedAt + 7 * DAY - 1);
  expect(await stored()).toMatchObject({ status: 'available', action: null });
  await passUntil(startedAt + 7 * DAY + 3 * HOUR);
  expect((await stored())?.status).toBe('deleted');
});

it('a volume without balance is deleted only after the deployment that it is attached to ends', async () => {
  const { id } = await world.deploy('a', (await stored())?.region ?? '');
  await world.settle(attachVolume(world.deps, caller, volumeId, id));
  // A deploying deployment is not ended for lack of balance.
  await world.update(id, { status: 'deploying' });
  await exhaust();
  await passUntil(exhaustedAt + 9 * DAY);
  expect(await stored()).toMatchObject({ status: 'attached', action: null });
  await world.update(id, { status: 'failed', stoppedAt: world.clock.now() });
  await passUntil(world.clock.now() + 2 * HOUR);
  // The instance still exists, so its volume is detached first.
  await passUntil(world.clock.now() + HOUR);
  await passUntil(world.clock.now() + HOUR);
  expect([truly(), (await stored())?.status]).toEqual([[], 'deleted']);
});

describe('money that comes back', () => {
  const pay = (amountMicroUsd = 500_000_000) =>
    topUp(world.deps, { teamId, amountMicroUsd, reference: `pay-${world.clock.now()}` });

  it('cancels the deletion, and the next time the days count from the start', async () => {
    await exhaust();
    await passUntil(exhaustedAt + 6.5 * DAY);
    await pay();
    await passUntil(exhaustedAt + 20 * DAY);
    expect(await stored()).toMatchObject({ status: 'available', action: null });
    await exhaust();
    expect((await watch()).volumesDeleteAt).toBe(exhaustedAt + 7 * DAY);
    await passUntil(exhaustedAt + 7 * DAY - 1);
    expect((await stored())?.status).toBe('available');
  });

  it('changes nothing where it leaves the balance below zero', async () => {
    await exhaust();
    await passUntil(exhaustedAt + 2 * DAY);
    await pay(10_000);
    await passUntil(exhaustedAt + 7 * DAY + HOUR);
    expect((await stored())?.status).toBe('deleted');
  });

  it('keeps the volume where it arrives just before the deletion begins, without a call to the provider', async () => {
    await exhaust();
    await passUntil(exhaustedAt + 7 * DAY - HOUR);
    // The payment arrives between the decision to delete the volume and the transaction that begins it.
    let isPaid = false;
    const house = createEnforcement(world.deps);
    const enforce: Enforcement = {
      ...house,
      deleteVolume: (volume, store) =>
        house.deleteVolume(volume, {
          ...store,
          transact: async (body) => {
            if (!isPaid) {
              isPaid = true;
              await pay();
            }
            return store.transact(body);
          },
        }),
    };
    await world.settle(job.stop());
    job = new BillingJob({ ...world.deps, enforce });
    await world.clock.advance(2 * HOUR);
    await round();
    expect(isPaid).toBe(true);
    expect(await stored()).toMatchObject({ status: 'available', action: null });
    expect(world.plain('a').faults.countOf('deleteVolume')).toBe(0);
    const lines = world.logged.map(({ level, message }) => `${level}: ${message}`);
    expect(lines).toContain('info: the volumes of the team are kept');
    await passUntil(world.clock.now() + 3 * DAY);
    expect((await stored())?.status).toBe('available');
  });
});

it('a volume without balance that its provider does not delete is retried, and delays nothing else', async () => {
  const other = await world.settle(
    createVolume(world.deps, caller, bodyFor('e', { region: 'eu-frankfurt' }) as never),
  );
  const refused = new ProviderError('refused', '400: no', { status: 400 });
  world.plain('a').faults.plan = (method) => (method === 'deleteVolume' ? { error: refused } : 'none');
  await exhaust();
  await passUntil(exhaustedAt + 7 * DAY + HOUR);
  expect((await world.deps.store.read.volumes.byVolumeId(other.volumeId))?.status).toMatch(/^delet/);
  expect(await stored()).toMatchObject({ status: 'available', action: null });
  world.plain('a').faults.plan = () => 'none';
  await passUntil(world.clock.now() + 4 * HOUR);
  expect((await stored())?.status).toBe('deleted');
  expect((await mails()).filter(({ kind }) => kind === 'volumes_deleted')).toHaveLength(1);
  await expectRightBooks();
});
