import { afterEach, beforeEach, expect, it } from 'vitest';
import { deployment, member, team } from '../../../test/support/rows/marketplace-rows.ts';
import { type Deployment, type DeploymentFilter, deploymentStatuses } from '../contract/deployment.ts';
import { caller, type Market, openMarket, stranger } from './market.fixture.ts';
import { type DeploymentListFilter, pagesOfDeployments, readDeployment } from './read.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
  await market.store.transact(async (tx) => {
    await tx.teams.insert(team({ id: 'team-3', ownerId: 'usr-2' }));
    for (const userId of ['usr-1', 'usr-2']) await tx.teams.putMember(member({ teamId: 'team-3', userId }));
    const base = { providerId: 'provider-x', offerId: 'gpu-1' };
    let createdAt = market.clock.now();
    for (const status of deploymentStatuses)
      await tx.deployments.insert(
        deployment({ ...base, id: `dep-${status}`, status, createdAt: createdAt++ }),
      );
    const shared = { ...base, teamId: 'team-3', status: 'running', createdAt: createdAt + 1 } as const;
    await tx.deployments.insert(deployment({ ...shared, id: 'dep-theirs', userId: 'usr-2' }));
    await tx.deployments.insert(
      deployment({ ...shared, id: 'dep-hidden', userId: 'usr-2', teamId: 'team-2' }),
    );
  });
});
afterEach(() => market.close());

async function listDeployments(by: typeof caller, filter: DeploymentListFilter): Promise<Deployment[]> {
  const items: string[] = [];
  for await (const page of pagesOfDeployments(market.deps, by, filter)) items.push(...page.items);
  return items.map((item) => JSON.parse(item) as Deployment);
}

const list = async (filter: DeploymentListFilter = {}, by = caller) =>
  (await listDeployments(by, filter)).map(({ id }) => id.replace('dep-', ''));

it('lists all of the caller’s teams, the newest first', async () => {
  expect(await list()).toEqual(['theirs', ...[...deploymentStatuses].reverse()]);
});

it.each<[DeploymentFilter, string[]]>([
  ['active', ['theirs', 'stopped', 'running', 'deploying']],
  ['inactive', ['terminated-provider', 'terminated', 'failed']],
  ['running', ['theirs', 'running']],
  ['deploying', ['deploying']],
  ['stopped', ['stopped']],
  ['terminated', ['terminated']],
  ['failed', ['failed']],
  ['terminated-provider', ['terminated-provider']],
])('lists with status=%s [list-by-status]', async (status, expected) => {
  expect(await list({ status })).toEqual(expected);
});

it('cuts nothing by default, and with a limit gives one page after another', async () => {
  const all = await list();
  expect(await list({ page: 1 })).toEqual(all);
  expect(await list({ page: 2 })).toEqual([]);
  const pages = [];
  for (let page = 1; page <= 4; page++) pages.push(await list({ limit: 3, page }));
  expect(pages).toEqual([all.slice(0, 3), all.slice(3, 6), all.slice(6), []]);
  expect(await list({ limit: 2, status: 'active' })).toEqual(['theirs', 'stopped']);
});

it('lists the deployments of the caller, and refuses to list those of another user [list-own-deployments]', async () => {
  expect(await list({ userId: 'usr-1' })).toEqual([...deploymentStatuses].reverse());
  expect((await list({ userId: 'usr-2' }, stranger)).sort()).toEqual(['hidden', 'theirs']);
  await expect(list({ userId: 'usr-2' })).rejects.toMatchObject({ status: 403 });
});

it('reads one with its extras, which a list leaves out [read-with-extras]', async () => {
  const one = await readDeployment(market.deps, caller, 'dep-running');
  expect(one.extras).toEqual({ deployment_type: 'vm', networking_type: 'public' });
  const [listed] = await listDeployments(caller, { status: 'stopped' });
  expect(listed).not.toHaveProperty('extras');
  await expect(readDeployment(market.deps, caller, 'dep-hidden')).rejects.toMatchObject({ status: 403 });
  await expect(readDeployment(market.deps, caller, 'dep-9')).rejects.toMatchObject({ status: 404 });
});
