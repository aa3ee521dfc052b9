import { assignDiscount, endDiscount } from '../../src/marketplace/discounts/discounts.ts';
import { topUp } from '../../src/marketplace/ledger/credit.ts';
import { isActive } from '../../src/marketplace/model/deployment-record.ts';
import type { Store } from '../../src/marketplace/model/store.ts';
import { cleanUpLost } from '../../src/marketplace/operate/actions.ts';
import { acceptLosses } from '../../src/marketplace/providers/loss-cap.ts';
import type { Actor } from '../../src/operator-kit/model.ts';
import type { Chance } from '../kernel/chance.ts';
import type { MarketUser } from './accounts.ts';
import type { CheckedWorld } from './invariants/inspector.ts';

/** What the operator uses of the world. */
export type OperatorWorld = CheckedWorld & { readonly users: { readonly chance: Chance } };

const ACCEPTED_FOR_MS = 3_600_000;
const OPERATOR: Actor = { name: 'operator', source: 'cli', address: null };

function depsOf(world: OperatorWorld, what: string) {
  const { database, scheduler, chance, tally } = world;
  return {
    store: database.store,
    clock: scheduler.clock,
    random: chance.fork(`${what}/${tally.commands}`),
  };
}

/** {@link depsOf}, but the inspector is told before a team's discounts change. */
function discountDepsOf(world: OperatorWorld, what: string, teamId: string) {
  const { database, inspector } = world;
  const transact: Store['transact'] = (body) =>
    database.store.transact(async (tx) => {
      await inspector.discountsChange(tx, teamId);
      return body(tx);
    });
  return { ...depsOf(world, what), store: { ...database.store, transact } };
}

/** Books one payment twice, as payment providers may send it. */
export async function topUpOf(world: OperatorWorld, { teamId, name }: MarketUser): Promise<void> {
  const amountMicroUsd = world.users.chance.whole(1, 3_000_000);
  await credit(world, teamId, amountMicroUsd, `payment-${name}-${world.tally.commands}`);
}

/** Books a credit twice under one reference; it must count once. */
export async function credit(
  world: OperatorWorld,
  teamId: string,
  amountMicroUsd: number,
  reference: string,
): Promise<void> {
  world.inspector.credited(teamId, amountMicroUsd);
  await Promise.all(
    ['once', 'again'].map((time) =>
      topUp(depsOf(world, `credit/${time}/${reference}`), { teamId, amountMicroUsd, reference }),
    ),
  );
  world.journal.note('operator', `credits ${amountMicroUsd} to ${teamId}`);
}

export async function assignDiscountTo(world: OperatorWorld, { teamId }: MarketUser): Promise<void> {
  const { chance } = world.users;
  const now = Math.floor(world.scheduler.now);
  const startsAt = now + (chance.happens(0.5) ? 0 : chance.whole(1_000, 90_000));
  const endsAt = chance.happens(0.5) ? startsAt + chance.whole(1_000, 120_000) : null;
  const percentage = chance.whole(5, 50);
  const discount = await assignDiscount(discountDepsOf(world, 'discount', teamId), {
    teamId,
    percentage,
    startsAt,
    endsAt,
  });
  world.journal.note('operator', `assigns ${discount.id} of ${percentage} % to ${teamId}`);
}

export async function endDiscountOf(world: OperatorWorld, { teamId }: MarketUser): Promise<void> {
  const { database, users, journal } = world;
  const discounts = await database.store.read.discounts.ofTeam(teamId);
  if (discounts.length === 0) return;
  const { id } = users.chance.pick(discounts);
  await endDiscount(discountDepsOf(world, 'end-discount', teamId), id);
  journal.note('operator', `ends ${id}`);
}

/** Has what is back of lost deployments deleted, as an operator does who was alerted of it. */
export async function cleanUpAllLost(world: OperatorWorld): Promise<void> {
  const { database, providers, journal } = world;
  for (const provider of providers)
    for (const { id } of provider.living)
      for (const record of await database.store.read.deployments.byInstance(provider.id, id)) {
        if (isActive(record) || record.cleanup !== 'none') continue;
        journal.note('operator', `has ${id} of ${record.id} deleted`);
        world.inspector.cleanUps.add(record.id);
        const deps = {
          ...depsOf(world, `clean-up/${record.id}`),
          providers: () => new Set(providers.map((one) => one.id)),
        };
        await cleanUpLost.perform(deps, OPERATOR, { deploymentId: record.id });
      }
}

/** Accepts the losses of every provider that holds some back, as an operator does who found that they are real. */
export async function acceptAllLosses(world: OperatorWorld): Promise<void> {
  const { database, scheduler, providers, journal } = world;
  for (const { id } of providers)
    if ((await database.store.read.losses.held(id)).length > 0) {
      journal.note('operator', `accepts what ${id} denies`);
      await acceptLosses(database, id, Math.floor(scheduler.now) + ACCEPTED_FOR_MS);
    }
}
