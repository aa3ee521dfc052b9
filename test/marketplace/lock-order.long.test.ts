import { expect, it } from 'vitest';
import { assignDiscount } from '../../src/marketplace/discounts/discounts.ts';
import { adjust, topUp } from '../../src/marketplace/ledger/credit.ts';
import { verifyLedger } from '../../src/marketplace/ledger/verify-ledger.ts';
import { defaultOptions } from '../../src/marketplace/model/options.ts';
import { changeUser } from '../../src/marketplace/teams/users.ts';
import { watchMarketplaceLocks } from '../support/databases/marketplace-locks.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const deploying = {
  provider: 'provider-d',
  offerId: 'gpu-1',
  gpuCount: 1,
  region: 'eu-one',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'DEDICATED',
};

it('locks rows in one order in every transaction, and keeps exact books on a clock that goes on', async () => {
  const clock = new VirtualClock();
  clock.msPerReading = 1;
  const plain = new PlainProvider(clock, { startMs: 5_000 });
  const violations = new Set<string>();
  await using market = await startTestMarketplace({
    clock,
    providers: { 'provider-d': { client: plain.client } },
    wrapStore: (store) =>
      watchMarketplaceLocks(store, (violation) => {
        violations.add(violation.replace(/[0-9a-f]{32}/g, '…'));
      }),
  });
  const { store, user, request } = market;
  const deps = market.marketplace.deps;
  await changeUser(deps, user.email, { wantsDeploymentMail: true });
  const succeed = async (method: string, path: string, body?: unknown) => {
    const { status, body: answer, text } = await request(method, path, { body });
    expect([200, 201], text).toContain(status);
    return answer as Record<string, string>;
  };

  const volume = await succeed('POST', '/api/volumes', {
    name: 'data',
    sizeInGb: 100,
    provider: 'provider-d',
    region: 'eu-one',
  });
  const deploy = (fields: object) =>
    succeed('POST', '/api/deployments', { ...deploying, ssh_public_key: newPublicKey(), ...fields });
  const first = await deploy({ volumeIds: [volume['volumeId']] });
  const second = await deploy({});
  await clock.advance(25 * MINUTE_MS);
  await succeed('POST', `/api/volumes/${volume['volumeId']}/detach`, { deploymentId: first['id'] });
  await succeed('POST', `/api/volumes/${volume['volumeId']}/attach`, { deploymentId: second['id'] });
  await succeed('POST', `/api/deployments/${first['id']}/pause`);
  await clock.advance(7 * MINUTE_MS);
  await succeed('POST', `/api/deployments/${first['id']}/resume`);
  await topUp(deps, { teamId: user.teamId, amountMicroUsd: 5_000_000, reference: 'pay-1' });
  await clock.advance(7 * MINUTE_MS);
  await succeed('DELETE', `/api/deployments/${second['id']}`);
  await clock.advance(7 * MINUTE_MS);
  const [left] = plain.instances;
  plain.set(left?.id ?? '', { status: 'ERROR', error: 'it broke' });
  await clock.advance(7 * MINUTE_MS);
  await succeed('DELETE', `/api/volumes/${volume['volumeId']}`);
  await clock.advance(MINUTE_MS);

  expect([...violations]).toEqual([]);
  expect((await verifyLedger(store, clock.now())).findings).toEqual([]);
});

it('locks teams in one order too, where prices change and balances end for many at once [teams-locked-in-order]', async () => {
  const clock = new VirtualClock();
  const plain = new PlainProvider(clock, { startMs: 5_000 });
  const violations = new Set<string>();
  const { billing } = defaultOptions;
  await using market = await startTestMarketplace({
    clock,
    providers: { 'provider-d': { client: plain.client } },
    options: {
      billing: {
        ...billing,
        zeroBalance: {
          graceMs: 10 * MINUTE_MS,
          stoppedGraceMs: 10 * MINUTE_MS,
          volumes: { keepMs: HOUR_MS, noticesMs: [] },
        },
      },
    },
    wrapStore: (store) => watchMarketplaceLocks(store, (violation) => void violations.add(violation)),
  });
  const { store, request } = market;
  const deps = market.marketplace.deps;
  const users = [market.user, await market.addUser('b@example.com'), await market.addUser('c@example.com')];
  // The last team begins first, so that the order of segments is not that of teams.
  users.sort((a, b) => (a.teamId < b.teamId ? 1 : -1));
  // The discount of a volume is that of its creation: it ends for all of them in one round.
  const endsAt = clock.now() + 8 * MINUTE_MS;
  for (const { teamId } of users) await assignDiscount(deps, { teamId, percentage: 10, endsAt });
  for (const { key } of users) {
    const volume = { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one' };
    expect((await request('POST', '/api/volumes', { body: volume, key })).status).toBe(201);
    const body = { ...deploying, ssh_public_key: newPublicKey() };
    expect((await request('POST', '/api/deployments', { body, key })).status).toBe(201);
  }
  await clock.advance(15 * MINUTE_MS);
  for (const { teamId } of users)
    await adjust(deps, { teamId, amountMicroUsd: -1_000_000_000, reason: 'a test' });
  await clock.advance(2 * HOUR_MS);

  const { teamId } = market.user;
  const { volumes } = await store.read.volumes.page({ teamId, offset: 0, limit: 1 });
  expect(volumes).toMatchObject([{ status: 'deleted' }]);
  expect(plain.instances).toEqual([]);
  expect([...violations]).toEqual([]);
  expect((await verifyLedger(store, clock.now())).findings).toEqual([]);
});
