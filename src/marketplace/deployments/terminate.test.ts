import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { intent, sshKey, user } from '../../../test/support/rows/marketplace-rows.ts';
import { deploymentStatuses, terminatedSchema } from '../contract/deployment.ts';
import type { DeploymentIntent } from '../model/deployment-record.ts';
import {
  beginAttach,
  caller,
  deploy,
  type Market,
  openMarket,
  read,
  withoutRevision,
} from './market.fixture.ts';
import { canTerminate, terminateDeployment } from './terminate.ts';

const MINUTE = 60_000;

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const terminate = (by = caller, id = 'dep-1') => terminateDeployment(market.deps, by, id);

it('ends the deployment now, and leaves the deletion at the provider to its worker [terminate-at-once]', async () => {
  await deploy(market);
  const answer = await terminate();
  expect(terminatedSchema.parse(answer)).toEqual(answer);
  const stoppedAt = new Date(market.clock.now()).toISOString();
  expect(answer.deployment).toEqual({ id: 'dep-1', status: 'terminated', stoppedAt });
  expect(await read(market)).toMatchObject({
    status: 'terminated',
    cleanup: 'wanted',
    launch: { request: null },
  });
  expect(market.woken).toEqual(['dep-1']);
  expect(market.plain.faults.calls).toEqual([]);
});

it('takes the temporary key with it [terminate-takes-temporary-key]', async () => {
  await market.store.transact((tx) => tx.sshKeys.insert(sshKey({ id: 'ssh-t', isTemporary: true })));
  await deploy(market, { sshKeyId: 'ssh-t', tempSshKeyId: 'ssh-t' });
  await terminate();
  expect(await market.store.read.sshKeys.byId('ssh-t')).toBeNull();
});

describe('before the minimum runtime [before-minimum-runtime]', () => {
  it.each([
    ['the default of 20 minutes', {}, {}, 20],
    ['the machine type’s own, where it is longer', {}, { providerMinimumRuntimeMinutes: 90 }, 90],
    ['the default, where the machine type’s is shorter', {}, { providerMinimumRuntimeMinutes: 5 }, 20],
    ['the account’s own', { minimumRuntimeMinutes: 0 }, {}, 0],
    ['the longer one of both', { minimumRuntimeMinutes: 45 }, { providerMinimumRuntimeMinutes: 30 }, 45],
  ])('is refused with what remains: %s [terminate-before-minimum]', async (_, account, changes, minimum) => {
    await market.store.transact((tx) => tx.users.update(user({ currentTeamId: 'team-1', ...account })));
    const startedAt = market.clock.now() + 65 * MINUTE;
    const before = await deploy(market, { startedAt, observedAt: null, ...changes });
    await market.clock.advance(startedAt - market.clock.now());
    if (minimum > 0) {
      await market.clock.advance(minimum * MINUTE - 1_000);
      await expect(terminate()).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
        status: 400,
        details: { runtime: minimum - 1, timeRemaining: 1, minimumRuntime: minimum },
      });
      expect(await read(market)).toEqual(before);
      expect(market.woken).toEqual([]);
      await market.clock.advance(1_000);
    }
    expect(await canTerminate(market.deps, caller, 'dep-1')).toMatchObject({ canTerminate: true });
    await terminate();
  });
});

it.each(deploymentStatuses.filter((status) => !['running', 'stopped'].includes(status)))(
  'refuses one that is %s, and names the status [terminate-status-refused]',
  async (status) => {
    const before = await deploy(market, { status });
    await expect(terminate()).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(status),
    });
    expect(await read(market)).toEqual(before);
  },
);

it('refuses a second time, naming the status', async () => {
  await deploy(market);
  await terminate();
  const before = await read(market);
  await expect(terminate()).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('terminated'),
  });
  expect(withoutRevision(await read(market))).toEqual(withoutRevision(before));
});

it.each(['pause', 'resume', 'restart'] satisfies DeploymentIntent['kind'][])(
  'does not wait for a change that is in flight: %s',
  async (kind) => {
    const status = kind === 'resume' ? 'stopped' : 'running';
    await deploy(market, { status, action: intent(kind, { since: market.clock.now() }) });
    expect((await terminate()).deployment.status).toBe('terminated');
    expect((await read(market)).action).toBeNull();
  },
);

it('does not wait for a volume that is being attached', async () => {
  await deploy(market);
  await beginAttach(market);
  expect((await terminate()).deployment.status).toBe('terminated');
  expect(await market.store.read.volumes.attachmentsOf({})).toMatchObject([{ state: 'detaching' }]);
});
