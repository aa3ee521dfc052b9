import { expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { createDeployment } from '../deployments/create.ts';
import { caller, wanted } from '../deployments/market.fixture.ts';
import { terminateDeployment } from '../deployments/terminate.ts';
import { HOUR_MS, MINUTE_MS, openProviderWorkers, read, type SyncSetup } from './sync.fixture.ts';

const requestId = 'req-of-the-create';

/** Makes the step that adopts the instance fail once. */
function breakOffOnce({ plain }: SyncSetup): void {
  const { client } = plain;
  const { listInstances } = client;
  let isBroken = true;
  client.listInstances = async (options) => {
    const listed = await listInstances(options);
    if (!isBroken || listed.length === 0) return listed;
    isBroken = false;
    throw new Error('a fault of ours');
  };
}

it('all lines of a deployment share its id, its team and the request that made it, to the end of its clean-up', async () => {
  const setup = await openProviderWorkers();
  const { deps, clock, plain, ssh, workers, logged } = setup;
  breakOffOnce(setup);
  ssh.fault = () => 'refuses';
  plain.faults.plan = (method, nth) => {
    if (method === 'createInstance') return 'commit-then-lose';
    return method === 'getInstance' && nth === 1
      ? { error: new ProviderError('invalid', 'half of a JSON') }
      : 'none';
  };
  const { id } = await createDeployment(deps, caller, wanted as never, { requestId });
  workers.start();
  await clock.advance(3 * MINUTE_MS);
  ssh.fault = () => 'none';
  await clock.advance(MINUTE_MS);
  expect(await read(setup, id)).toMatchObject({ status: 'running', launch: { requestId } });
  plain.create({
    configuration_id: 'gpu-1',
    region: 'eu-one',
    ssh_keys: [],
    name: (await read(setup, id)).providerName,
  });
  await clock.advance(2 * HOUR_MS);
  plain.faults.plan = (method) =>
    method === 'deleteInstance' ? { error: new ProviderError('conflict', '409: locked') } : 'none';
  await terminateDeployment(deps, caller, id);
  await clock.advance(90 * MINUTE_MS);
  plain.faults.plan = () => 'none';
  await clock.advance(20 * MINUTE_MS);
  expect(await read(setup, id)).toMatchObject({ status: 'terminated', cleanup: 'done' });
  await setup.close();
  const shared = { deployment: id, team: 'team-1', request_id: requestId, provider: 'provider-x' };
  const ofTheProvider = logged.filter(({ fields }) => fields['deployment'] === undefined);
  expect(ofTheProvider.map(({ message }) => message)).toEqual([
    'calls to the provider fail: its last known state is kept until it answers again',
    'the provider answers again',
  ]);
  const ofTheDeployment = logged.filter((line) => !ofTheProvider.includes(line));
  for (const { message, fields } of ofTheDeployment) expect({ message, ...fields }).toMatchObject(shared);
  expect([...new Set(ofTheDeployment.map(({ message }) => message))]).toEqual([
    'a step failed; it will be retried',
    'the provider has made an instance',
    'an answer of the provider is ignored: the last known state is kept',
    expect.stringContaining('does not accept an SSH login yet'),
    'SSH login to a new machine succeeded with its key',
    'a deployment changed',
    'an instance that no deployment needs is being deleted',
    expect.stringContaining('may still exist and cost money'),
  ]);
});
