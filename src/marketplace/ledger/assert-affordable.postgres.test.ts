import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { runningDeployment, seed, teamId, userId } from '../../../test/support/rows/marketplace-rows.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { createDeployment } from '../deployments/create.ts';
import { resumeDeployment } from '../deployments/lifecycle.ts';
import { marketOn, wanted } from '../deployments/market.fixture.ts';
import type { Deps } from '../deps.ts';
import type { Store } from '../model/store.ts';
import { adjust } from './credit.ts';

const HOUR_OF_GPU = 2_000_000;
const caller = { userId };

let server: PostgresServer;
let stores: Store[];
let replicas: Deps[];

beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase('marketplace');
  stores = [await openMarketplacePostgresStore(url), await openMarketplacePostgresStore(url)];
  await seed(stores[0] as Store);
  // The provider never answers a call: only the intents count.
  replicas = stores.map((store) => {
    const { deps, plain } = marketOn(store);
    plain.faults.plan = () => 'hang';
    return deps;
  });
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server[Symbol.asyncDispose]();
});

function first(): Deps {
  return replicas[0] as Deps;
}

async function setBalance(amountMicroUsd: number): Promise<void> {
  const balance = (await first().store.read.teams.byId(teamId))?.balanceMicroUsd ?? 0;
  if (balance !== amountMicroUsd)
    await adjust(first(), { teamId, amountMicroUsd: amountMicroUsd - balance, reason: 'test' });
}

it('lets two replicas deploy at once no more than the balance lasts for, and no more than the team may have', async () => {
  await setBalance(7 * HOUR_OF_GPU + 1);
  const settled = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      createDeployment(replicas[index % 2] as Deps, caller, wanted as never),
    ),
  );
  const refused = settled.flatMap((it) => (it.status === 'rejected' ? [it.reason] : []));
  expect(refused.map(({ details }) => details?.reason ?? details)).toEqual(
    new Array(13).fill('insufficient_balance'),
  );
  const made = await first().store.read.deployments.list({ teamIds: [teamId] });
  expect(made).toHaveLength(7);

  await setBalance(100 * HOUR_OF_GPU);
  for (const deps of replicas) {
    const { spending } = deps.options;
    const teamLimits = { ...spending.teamLimits, deployments: 9 };
    deps.options = { ...deps.options, spending: { ...spending, teamLimits } };
  }
  const more = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      createDeployment(replicas[index % 2] as Deps, caller, wanted as never),
    ),
  );
  expect(more.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
});

it('lets two replicas start at once no more than the balance lasts for', async () => {
  const { store } = first();
  await store.transact(async (tx) => {
    for (const { id } of await tx.deployments.list({ teamIds: [teamId] })) {
      const record = await tx.deployments.byId(id);
      if (record !== null) await tx.deployments.update({ ...record, status: 'failed', stoppedAt: 1 });
    }
    for (const id of ['dep-1', 'dep-2', 'dep-3', 'dep-4'])
      await tx.deployments.insert(
        runningDeployment({
          id,
          status: 'stopped',
          providerId: 'provider-x',
          region: 'eu-one',
          offerId: 'gpu-1',
          pausedAt: 1,
          originalStoppedRateMicroUsd: 0,
          stoppedRateMicroUsd: 0,
        }),
      );
  });
  await setBalance(2 * HOUR_OF_GPU + 1);
  const resumes = ['dep-1', 'dep-2', 'dep-3', 'dep-4'].map((id, index) => {
    const deps = replicas[index % 2] as Deps;
    return resumeDeployment(deps, caller, id).catch((error) => error.details?.reason);
  });
  const refused: unknown[] = [];
  for (const resume of resumes) void resume.then((reason) => refused.push(reason));
  await expect.poll(() => refused).toEqual(['insufficient_balance', 'insufficient_balance']);
  const begun = (await store.read.deployments.list({ teamIds: [teamId], statuses: ['stopped'] })).filter(
    ({ action }) => action?.kind === 'resume',
  );
  expect(begun).toHaveLength(2);
});
