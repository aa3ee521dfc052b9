import { expect, it } from 'vitest';
import { steadyRandom } from '../../../test/support/doubles/random.ts';
import { deployment } from '../../../test/support/rows/marketplace-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { toProviderName } from '../../marketplace/model/names.ts';
import { createTeam } from '../../marketplace/teams/teams.ts';
import { addUser } from '../../marketplace/teams/users.ts';
import { openMemoryMarketplaceStore } from '../../store/marketplace/sqlite/store.ts';
import { Tenants } from './tenants.ts';

it('a deployment is of its user, and found by the owner of its team', async () => {
  const store = openMemoryMarketplaceStore();
  const deps = { store, clock: new VirtualClock(), random: steadyRandom() };
  await addUser(deps, { email: 'boss@sandbox.test' });
  const team = await createTeam(deps, { name: 'Team', owner: 'boss@sandbox.test' });
  const user = await addUser(deps, { email: 'worker@sandbox.test', team: team.id });
  const id = `dep-${'0'.repeat(32)}`;
  await store.transact((tx) => tx.deployments.insert(deployment({ id, teamId: team.id, userId: user.id })));
  const tenants = new Tenants(store.read);
  const expected = { account: 'worker', alsoOf: ['boss', 'marketplace'] };
  expect(await tenants.of(id)).toEqual(expected);
  expect(await tenants.of(`${toProviderName('00c0ffee', id)}-2`)).toEqual(expected);
  expect(await tenants.of('mine')).toBeUndefined();
  await store.close();
});
