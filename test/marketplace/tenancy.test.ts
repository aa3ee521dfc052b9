import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace, type TestUser } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

interface Ids {
  deploymentId: string;
  teamId: string;
  sshKeyId: string;
  volumeId: string;
  userId: string;
}

const deploying = {
  provider: 'provider-d',
  offerId: 'gpu-1',
  gpuCount: 1,
  region: 'eu-one',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'DEDICATED',
};
const storing = { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one' };

/** Every place where a request names a resource that has an owner. */
const routes: [method: string, toPath: (ids: Ids) => string, toBody?: (ids: Ids, mine: Ids) => object][] = [
  ['GET', ({ deploymentId }) => `/api/deployments/${deploymentId}`],
  ['PATCH', ({ deploymentId }) => `/api/deployments/${deploymentId}`, () => ({ name: 'mine now' })],
  ['PATCH', ({ deploymentId }) => `/api/deployments/${deploymentId}`, () => ({})],
  ['DELETE', ({ deploymentId }) => `/api/deployments/${deploymentId}`],
  ['GET', ({ deploymentId }) => `/api/deployments/${deploymentId}/can-terminate`],
  ['GET', ({ deploymentId }) => `/api/deployments/${deploymentId}/pause-quote`],
  ['POST', ({ deploymentId }) => `/api/deployments/${deploymentId}/pause`],
  ['POST', ({ deploymentId }) => `/api/deployments/${deploymentId}/resume`],
  ['POST', ({ deploymentId }) => `/api/deployments/${deploymentId}/restart`],
  ['GET', ({ deploymentId }) => `/api/deployments/${deploymentId}/reboot-status`],
  ['GET', ({ sshKeyId }) => `/api/ssh-keys/${sshKeyId}`],
  ['DELETE', ({ sshKeyId }) => `/api/ssh-keys/${sshKeyId}`],
  ['GET', ({ volumeId }) => `/api/volumes/${volumeId}`],
  ['PATCH', ({ volumeId }) => `/api/volumes/${volumeId}`, () => ({ name: 'mine-now' })],
  ['DELETE', ({ volumeId }) => `/api/volumes/${volumeId}`],
  ['POST', ({ volumeId }) => `/api/volumes/${volumeId}/attach`, (_, { deploymentId }) => ({ deploymentId })],
  ['POST', ({ volumeId }) => `/api/volumes/${volumeId}/detach`, (_, { deploymentId }) => ({ deploymentId })],
  ['GET', ({ teamId }) => `/api/teams/details/${teamId}`],
  ['GET', ({ teamId }) => `/api/balance?teamId=${teamId}`],
  ['GET', ({ teamId }) => `/api/deployments?teamId=${teamId}`],
  ['GET', ({ teamId }) => `/api/ssh-keys?teamId=${teamId}`],
  ['GET', ({ teamId }) => `/api/volumes?teamId=${teamId}`],
  ['POST', () => '/api/ssh-keys', ({ teamId }) => ({ name: 'k', publicKey: newPublicKey(), teamId })],
  ['POST', () => '/api/volumes', ({ teamId }) => ({ ...storing, teamId })],
  ['POST', () => '/api/volumes', ({ deploymentId }) => ({ ...storing, deploymentId })],
  [
    'POST',
    () => '/api/deployments',
    ({ teamId }) => ({ ...deploying, teamId, ssh_public_key: newPublicKey() }),
  ],
  ['POST', () => '/api/deployments', ({ sshKeyId }) => ({ ...deploying, sshKeyId })],
  [
    'POST',
    () => '/api/deployments',
    ({ volumeId }, { sshKeyId }) => ({ ...deploying, sshKeyId, volumeIds: [volumeId] }),
  ],
];
/** Here the other thing is named in the body, beside a path to something of one's own. */
const bodies: typeof routes = [
  ['POST', ({ volumeId }) => `/api/volumes/${volumeId}/attach`, ({ deploymentId }) => ({ deploymentId })],
  ['POST', ({ volumeId }) => `/api/volumes/${volumeId}/detach`, ({ deploymentId }) => ({ deploymentId })],
];

describe('what belongs to others', () => {
  const clock = new VirtualClock();
  const plain = new PlainProvider(clock);
  let market: TestMarketplace;
  let stranger: TestUser;
  let theirs: Ids;
  let mine: Ids;

  beforeAll(async () => {
    market = await startTestMarketplace({ clock, providers: { 'provider-d': { client: plain.client } } });
    stranger = await market.addUser('stranger@example.com');
    theirs = await makeAll(stranger);
    mine = await makeAll(market.user);
  });
  afterAll(() => market[Symbol.asyncDispose]());

  async function makeAll({ key, teamId, userId }: TestUser): Promise<Ids> {
    const make = async (path: string, body: object) => {
      const reply = await market.request('POST', path, { body, key });
      if (reply.status !== 201) throw new Error(reply.text);
      return reply.body;
    };
    const sshKey = await make('/api/ssh-keys', { name: 'k', publicKey: newPublicKey() });
    const deployment = await make('/api/deployments', { ...deploying, sshKeyId: sshKey['id'] });
    await clock.advance(60_000);
    const volume = await make('/api/volumes', storing);
    return {
      teamId,
      userId,
      sshKeyId: String(sshKey['id']),
      deploymentId: String(deployment['id']),
      volumeId: String(volume['volumeId']),
    };
  }

  const unknown: Ids = {
    deploymentId: 'dep-none',
    teamId: 'team-none',
    sshKeyId: 'ssh-none',
    volumeId: 'vol-none',
    userId: 'usr-none',
  };

  it.each(routes)(
    'is 403, and what is not there 404: %s %s %s [tenancy-ids]',
    async (method, toPath, toBody) => {
      const ask = (ids: Ids) =>
        market.request(method, toPath(ids), toBody === undefined ? {} : { body: toBody(ids, mine) });
      const before = [plain.instances, plain.volumes, await market.store.read.ledger.balances()];
      expect(await ask(theirs)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
      expect(await ask(unknown)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
      expect([plain.instances, plain.volumes, await market.store.read.ledger.balances()]).toEqual(before);
    },
  );

  it.each(bodies)('is 403 in a body too: %s %s %s [tenancy-bodies]', async (method, toPath, toBody) => {
    const ask = (ids: Ids) => market.request(method, toPath(mine), { body: toBody?.(ids, mine) });
    expect(await ask(theirs)).toMatchObject({ status: 403 });
    expect(await ask(unknown)).toMatchObject({ status: 404 });
  });

  it.each(['/api/deployments', '/api/ssh-keys'])(
    'is in no list, and asked for is 403: %s [tenancy-lists]',
    async (path) => {
      expect((await market.request<object[]>('GET', path)).body).toHaveLength(1);
      expect((await market.request('GET', `${path}?userId=${theirs.userId}`)).status).toBe(403);
      expect((await market.request('GET', `${path}?userId=${mine.userId}`)).status).toBe(200);
    },
  );

  it('is untouched after all of that [tenancy-untouched]', async () => {
    const deployment = await market.request('GET', `/api/deployments/${theirs.deploymentId}`, {
      key: stranger.key,
    });
    expect(deployment.body).toMatchObject({ status: 'running', userId: theirs.userId });
    const volume = await market.request('GET', `/api/volumes/${theirs.volumeId}`, { key: stranger.key });
    expect(volume.body).toMatchObject({ name: 'data', status: 'available' });
  });
});
