import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { type MarketRequest, startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const MINUTE_MS = 60_000;
const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL('../../openapi/marketplace.json', import.meta.url), 'utf8'),
);
const endpoints = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
);

describe('a life with the marketplace', () => {
  const clock = new VirtualClock();
  const plain = new PlainProvider(clock, { startMs: 5_000 });
  const growing = new PlainProvider(clock);
  const succeeded = new Map<string, number>();
  let market: TestMarketplace;
  let deploymentId: string;
  let sshKeyId: string;
  let volumeId: string;

  beforeAll(async () => {
    const providers = { 'provider-d': { client: plain.client }, 'provider-e': { client: growing.client } };
    market = await startTestMarketplace({ clock, providers });
  });
  afterAll(() => market[Symbol.asyncDispose]());

  /** Sends a request that must succeed, and remembers which endpoint did. */
  async function ask<Body = Record<string, unknown>>(
    method: string,
    path: string,
    options: MarketRequest = {},
  ): Promise<Body> {
    const { status, body, text } = await market.request<Body>(method, path, options);
    if (status >= 300) throw new Error(`${method} ${path} → ${status}: ${text}`);
    const template = path
      .replace(/\?.*$/, '')
      .replace(deploymentId, '{deploymentId}')
      .replace(volumeId, '{volumeId}')
      .replace(sshKeyId, '{id}')
      .replace(market.user.teamId, '{teamId}');
    succeeded.set(`${method} ${template}`, status);
    return body;
  }

  async function passUntil(path: string, status: string): Promise<Record<string, unknown>> {
    for (let seconds = 0; seconds < 300; seconds++) {
      const body = await ask('GET', path);
      if (body['status'] === status) return body;
      await clock.advance(1_000);
    }
    throw new Error(`${path} never reads ${status}`);
  }

  it('shows what is sold, and what it is set to [journey-catalog]', async () => {
    expect(await ask('GET', '/api/providers', { key: null })).toEqual(['provider-d', 'provider-e']);
    const offers = await ask<{ data: { gpuType: string }[]; total: number }>('GET', '/api/gpu-offers');
    expect(offers.data.map(({ gpuType }) => gpuType)).toEqual(expect.arrayContaining(['CPU']));
    await ask('GET', '/api/gpu-offers-with-reserved?providers=provider-d');
    expect(await ask('GET', '/api/config/system')).toMatchObject({
      minimumRuntimeMinutes: 20,
      volumeProviders: ['provider-d', 'provider-e'],
      rateLimits: { windowSeconds: 900 },
    });
  });

  it('shows teams and balances [journey-teams]', async () => {
    const { teamId } = market.user;
    const [team] = await ask<{ id: string; balance: number }[]>('GET', '/api/teams');
    expect(team).toMatchObject({ id: teamId, balance: 1000 });
    expect(await ask('GET', `/api/teams/details/${teamId}`)).toMatchObject({ id: teamId });
    expect(await ask('GET', '/api/balance?all=false')).toMatchObject({
      teams: [{ teamId, balance: 1000, isCurrentTeam: true, role: 'owner' }],
      currency: 'USD',
    });
  });

  it('keeps SSH keys [journey-ssh-keys]', async () => {
    const body = { name: 'laptop', publicKey: newPublicKey(), teamId: null };
    sshKeyId = String((await ask('POST', '/api/ssh-keys', { body }))['id']);
    expect(await ask('GET', '/api/ssh-keys')).toHaveLength(1);
    expect(await ask('GET', `/api/ssh-keys/${sshKeyId}`)).toMatchObject({ name: 'laptop' });
  });

  it('deploys, renames and finds it again [journey-deploy]', async () => {
    const created = await ask('POST', '/api/deployments', {
      body: {
        provider: 'provider-d',
        offerId: 'gpu-1',
        gpuCount: 1,
        region: 'eu-one',
        sshKeyId,
        operatingSystem: 'ubuntu-24.04',
        instanceType: 'dedicated',
        name: 'mine',
        ...{ gpuType: null, teamId: null, cloudInit: null, volumeIds: null },
      },
    });
    expect(created).toMatchObject({ status: 'deploying', ipAddress: null, sshCommand: null, sshPort: null });
    deploymentId = String(created['id']);
    expect(await passUntil(`/api/deployments/${deploymentId}`, 'running')).toMatchObject({
      ipAddress: '192.0.2.1',
      hourlyRate: 2,
    });
    const renamed = await ask('PATCH', `/api/deployments/${deploymentId}`, {
      body: { name: 'ours\0\ud800' },
    });
    expect(renamed).toMatchObject({ name: 'ours\0\ud800', status: 'running' });
    expect(await ask('GET', '/api/deployments?status=active')).toHaveLength(1);
    expect(await ask('GET', '/api/deployments?status=inactive')).toEqual([]);
  });

  it('stores, attaches and enlarges where a provider can [journey-volumes]', async () => {
    const query = 'provider=provider-d';
    const nothing = { cloudId: null, teamId: null, deploymentId: null };
    const { regions } = await ask<{ regions: { id: string; hourlyRatePerGb: number }[] }>(
      'GET',
      `/api/volumes/regions?${query}`,
    );
    expect(regions.map(({ id }) => id)).toEqual(['eu-one']);
    await ask('GET', `/api/volumes/pricing?${query}&region=eu-one`);
    const body = { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one', ...nothing };
    const created = await ask('POST', '/api/volumes', { body });
    expect(created).toMatchObject({ status: 'available' });
    volumeId = String(created['volumeId']);
    expect(await ask('GET', '/api/volumes')).toMatchObject({ total: 1, page: 1, limit: 20, totalPages: 1 });
    expect(await ask('GET', `/api/volumes/${volumeId}`)).toMatchObject({ name: 'data' });
    const refused = await market.request('PATCH', `/api/volumes/${volumeId}`, { body: { sizeInGb: 200 } });
    expect(refused.status).toBe(400);
    const attached = await ask('POST', `/api/volumes/${volumeId}/attach`, { body: { deploymentId } });
    expect(attached).toMatchObject({ status: 'attached', attachedToDeploymentIds: [deploymentId] });
    const detached = await ask('POST', `/api/volumes/${volumeId}/detach`, { body: { deploymentId } });
    expect(detached).toMatchObject({ status: 'available', attachedToDeploymentIds: [] });
    expect(await ask('DELETE', `/api/volumes/${volumeId}`)).toEqual({ success: true });
    const other = await ask('POST', '/api/volumes', { body: { ...body, provider: 'provider-e' } });
    volumeId = String(other['volumeId']);
    const grown = await ask('PATCH', `/api/volumes/${volumeId}`, { body: { sizeInGb: 200 } });
    expect(grown).toMatchObject({ volumeId, sizeInGb: 200 });
  });

  it('stops, starts and restarts [journey-stop-start]', async () => {
    const path = `/api/deployments/${deploymentId}`;
    expect(await ask('GET', `${path}/pause-quote`)).toMatchObject({ hourlyRate: 0.5, currentHourlyRate: 2 });
    expect(await ask('POST', `${path}/pause`)).toMatchObject({ status: 'stopped', stoppedHourlyRate: 0.5 });
    expect(await ask('POST', `${path}/resume`)).toMatchObject({ status: 'running' });
    expect(await ask('POST', `${path}/restart`)).toMatchObject({ status: 'running' });
    expect(await ask('GET', `${path}/reboot-status`)).toMatchObject({ restarting: true });
    await clock.advance(2 * MINUTE_MS);
    expect(await ask('GET', `${path}/reboot-status`)).toEqual({ restarting: false });
  });

  it('ends [journey-end]', async () => {
    const path = `/api/deployments/${deploymentId}`;
    expect(await ask('GET', `${path}/can-terminate`)).toMatchObject({
      canTerminate: false,
      minimumRuntime: 20,
    });
    expect((await market.request('DELETE', path)).status).toBe(400);
    await clock.advance(20 * MINUTE_MS);
    expect(await ask('DELETE', path)).toMatchObject({
      deployment: { id: deploymentId, status: 'terminated', stoppedAt: expect.any(String) },
    });
    await clock.advance(MINUTE_MS);
    expect(plain.instances).toEqual([]);
    expect(await ask('DELETE', `/api/ssh-keys/${sshKeyId}`)).toEqual({ success: true });
  });

  it('has used each of the 31 endpoints; what makes something answers 201, the rest 200 [journey-every-endpoint]', () => {
    expect(endpoints).toHaveLength(31);
    expect([...succeeded.keys()].sort()).toEqual([...endpoints].sort());
    const created = [...succeeded].filter(([, status]) => status === 201).map(([endpoint]) => endpoint);
    expect(created).toEqual(['POST /api/ssh-keys', 'POST /api/deployments', 'POST /api/volumes']);
    expect([...succeeded.values()].every((status) => status === 201 || status === 200)).toBe(true);
  });
});
