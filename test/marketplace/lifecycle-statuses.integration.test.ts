import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '../../src/client/orchestrator-client.ts';
import type { CatalogOffer } from '../../src/marketplace/providers/provider.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import type { ProviderFault, ProviderMethod } from '../support/doubles/provider-faults.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

let clock: VirtualClock;
/** Stops and restarts. */
let able: PlainProvider;
/** Does neither. */
let unable: PlainProvider;
let market: TestMarketplace;
beforeEach(async () => {
  clock = new VirtualClock();
  able = new PlainProvider(clock);
  unable = new PlainProvider(clock);
  const providers = { 'provider-d': { client: able.client }, 'provider-a': { client: unable.client } };
  market = await startTestMarketplace({ clock, providers });
});
afterEach(() => market[Symbol.asyncDispose]());

const read = async (id: string) => (await market.request('GET', `/api/deployments/${id}`)).body;
const ask = (method: string, id: string, action: string) =>
  market.request(method, `/api/deployments/${id}/${action}`);

async function deploy(provider = 'provider-d'): Promise<string> {
  const body = {
    provider,
    offerId: 'gpu-1',
    gpuCount: 1,
    region: 'eu-one',
    ssh_public_key: newPublicKey(),
    operatingSystem: 'ubuntu-24.04',
    instanceType: 'DEDICATED',
  };
  const { body: made } = await market.request('POST', '/api/deployments', { body });
  await clock.advance(90_000);
  const id = String(made['id']);
  expect(await read(id)).toMatchObject({ status: 'running' });
  return id;
}

async function deployStopped(): Promise<string> {
  const id = await deploy();
  expect(await ask('POST', id, 'pause')).toMatchObject({ status: 200, body: { status: 'stopped' } });
  return id;
}

function fail(method: ProviderMethod, fault: ProviderFault): void {
  able.faults.plan = (called) => (called === method ? fault : 'none');
}

/** What says something to a user; the cost and the time of a stop go on by themselves. */
function withoutTime({
  totalCost: _,
  lastCreditDeduction: __,
  totalPausedHours: ___,
  ...deployment
}: Record<string, unknown>) {
  return deployment;
}

const refused = { error: new ProviderError('refused', '400: secret words', { status: 400 }) };

describe('400: what cannot be done, with `error` naming the limit', () => {
  it.each([
    ['GET', 'pause-quote', 'Provider A cannot stop instances'],
    ['POST', 'pause', 'Provider A cannot stop instances'],
    ['POST', 'restart', 'Provider A cannot restart instances'],
    ['GET', 'reboot-status', 'Provider A cannot restart instances'],
  ])('%s %s of a provider that cannot [unsupported-action-refused]', async (method, action, text) => {
    const id = await deploy('provider-a');
    expect(await ask(method, id, action)).toMatchObject({
      status: 400,
      body: { code: 'ACTION_UNSUPPORTED', error: expect.stringContaining(text) },
    });
    expect(await read(id)).toMatchObject({ supportsPause: false, supportsRestart: false });
  });

  it.each([
    ['GET', 'pause-quote'],
    ['POST', 'pause'],
    ['POST', 'restart'],
  ])('%s %s of what is stopped [stopped-action-refused]', async (method, action) => {
    const id = await deployStopped();
    expect(await ask(method, id, action)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_STATUS', error: expect.stringContaining('stopped') },
    });
  });

  it('POST resume of what runs [resume-of-running]', async () => {
    expect(await ask('POST', await deploy(), 'resume')).toMatchObject({
      status: 400,
      body: { code: 'INVALID_STATUS', error: expect.stringContaining('running') },
    });
  });
});

describe('409: another change is in flight', () => {
  it.each(['pause', 'restart'])('POST %s during a restart [conflict-during-restart]', async (action) => {
    const id = await deploy();
    expect((await ask('POST', id, 'restart')).status).toBe(200);
    expect(await ask('POST', id, action)).toMatchObject({
      status: 409,
      body: { code: 'CHANGE_IN_PROGRESS' },
    });
    expect(await read(id)).toMatchObject({ status: 'running' });
  });

  it('POST resume while an earlier one is awaited [conflict-resume-awaited]', async () => {
    const id = await deployStopped();
    able.options.startMs = 60_000;
    expect((await ask('POST', id, 'resume')).status).toBe(504);
    expect(await ask('POST', id, 'resume')).toMatchObject({
      status: 409,
      body: { code: 'CHANGE_IN_PROGRESS' },
    });
  });

  it('POST pause while a volume is attached [conflict-volume-attaching]', async () => {
    const id = await deploy();
    const body = { name: 'data', sizeInGb: 10, provider: 'provider-d', region: 'eu-one' };
    const { volumeId } = (await market.request('POST', '/api/volumes', { body })).body;
    able.options.volumeMs = 60_000;
    const attach = { body: { deploymentId: id } };
    expect((await market.request('POST', `/api/volumes/${volumeId}/attach`, attach)).status).toBe(504);
    expect(await ask('POST', id, 'pause')).toMatchObject({
      status: 409,
      body: { code: 'CHANGE_IN_PROGRESS' },
    });
  });
});

describe('502: the provider refused, and nothing changed [provider-refused]', () => {
  it.each([
    ['POST', 'pause', 'stopInstance', deploy],
    ['POST', 'restart', 'restartInstance', deploy],
    ['POST', 'resume', 'startInstance', deployStopped],
  ] as const)(
    '%s %s leaves all as it was [provider-refused-nothing-changed]',
    async (method, action, called, make) => {
      const id = await make();
      const before = await read(id);
      fail(called, refused);
      const reply = await ask(method, id, action);
      expect(reply).toMatchObject({ status: 502, body: { code: 'PROVIDER_REFUSED' } });
      expect(reply.text).not.toContain('secret words');
      expect(withoutTime(await read(id))).toEqual(withoutTime(before));
    },
  );

  it.each([
    ['GET', 'pause-quote'],
    ['POST', 'pause'],
  ])(
    '%s %s where the stopped rate is undeterminable [stopped-rate-undeterminable]',
    async (method, action) => {
      const id = await deploy();
      // Neither the offer of that time nor the one of now says what it costs.
      await market.store.transact(async (tx) => {
        const record = await tx.deployments.byId(id);
        if (record !== null) await tx.deployments.update({ ...record, extras: {} });
      });
      const before = await read(id);
      const { offers } = market.marketplace.providers.get('provider-d')?.catalog ?? {};
      (offers as Map<string, CatalogOffer>).clear();
      expect(await ask(method, id, action)).toMatchObject({
        status: 502,
        body: { code: 'PROVIDER_REFUSED' },
      });
      expect(able.faults.countOf('stopInstance')).toBe(0);
      expect(withoutTime(await read(id))).toEqual(withoutTime(before));
    },
  );
});

describe('503: the machine type is out of stock', () => {
  it('POST resume leaves it stopped, with its instance, its address and its volumes; later it starts [resume-out-of-stock]', async () => {
    const id = await deployStopped();
    const before = await read(id);
    able.options.capacity = 0;
    expect(await ask('POST', id, 'resume')).toMatchObject({ status: 503, body: { code: 'OUT_OF_STOCK' } });
    expect(withoutTime(await read(id))).toEqual(withoutTime(before));
    expect(able.instances.map(({ status }) => status)).toEqual(['STOPPED']);
    able.options.capacity = 1;
    able.options.startMs = 5_000;
    expect(await ask('POST', id, 'resume')).toMatchObject({
      status: 200,
      body: { status: 'running', ipAddress: before['ipAddress'] },
    });
  });
});

describe('504: the provider is slow, the request went through, and polling shows it', () => {
  it.each([
    ['pause', 'stopMs', deploy, { status: 'stopped', stoppedHourlyRate: 0.5 }],
    ['resume', 'startMs', deployStopped, { status: 'running', pausedAt: null }],
  ] as const)(
    'POST %s goes on at the provider [slow-provider-goes-on]',
    async (action, option, make, expected) => {
      const id = await make();
      const before = await read(id);
      able.options[option] = 60_000;
      expect(await ask('POST', id, action)).toMatchObject({ status: 504, body: { code: 'PROVIDER_SLOW' } });
      expect(await read(id)).toMatchObject({ status: before['status'] });
      await clock.advance(120_000);
      expect(await read(id)).toMatchObject(expected);
    },
  );

  it('POST restart [slow-restart]', async () => {
    const id = await deploy();
    able.faults.plan = (called) => (/^restart/.test(called) ? 'lose' : 'none');
    expect(await ask('POST', id, 'restart')).toMatchObject({ status: 504, body: { code: 'PROVIDER_SLOW' } });
    expect(await read(id)).toMatchObject({ status: 'running' });
  });
});
