import { afterEach, beforeEach, expect, it } from 'vitest';
import { renameDeploymentSchema } from '../contract/deployment.ts';
import { caller, deploy, type Market, openMarket, read, withoutRevision } from './market.fixture.ts';
import { renameDeployment } from './read.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
  await deploy(market);
});
afterEach(() => market.close());

const rename = (body: object, by = caller, id = 'dep-1') =>
  renameDeployment(market.deps, by, id, renameDeploymentSchema.parse(body));

it('changes only the name, and answers with the whole deployment [rename-deployment]', async () => {
  const before = await read(market);
  const renamed = await rename({ name: 'új név\n"x"', status: 'terminated', gpuCount: 8 });
  expect(renamed).toMatchObject({ name: 'új név\n"x"', status: 'running', extras: {} });
  expect(withoutRevision(await read(market))).toEqual({ ...withoutRevision(before), name: 'új név\n"x"' });
});

it('accepts an empty label', async () => {
  expect((await rename({ name: '' })).name).toBe('');
});

it.each([{}, { status: 'stopped' }])(
  'reports that there is nothing to update: %j [rename-nothing-to-update]',
  async (body) => {
    await expect(rename(body)).rejects.toMatchObject({ status: 404, message: 'Nothing to update' });
  },
);

it.each([7, null, ['x'], {}])('refuses a name that is not a string: %j', (name) => {
  expect(renameDeploymentSchema.safeParse({ name }).success).toBe(false);
});
