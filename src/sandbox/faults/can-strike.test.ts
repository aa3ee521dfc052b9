import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { marketClient } from '../isolation.fixture.ts';
import type { Sandbox } from '../sandbox.ts';
import { type Bench, benchOf, startBench } from './bench.fixture.ts';
import type { FaultName } from './catalog/catalog.ts';

let sandbox: Sandbox;
let bench: Bench;
let ids: Record<string, string>;
beforeAll(async () => {
  sandbox = await startBench({ marketplace: true });
  bench = await benchOf(sandbox);
  const tenant = await sandbox.account();
  const market = marketClient(sandbox, tenant);
  const deployment = (await market.deploy()).body.id;
  await market.until(deployment, 'running');
  const [machine = ''] = await sandbox.provider('b').resourceIds('instance');
  ids = {
    INSTANCE: await bench.make(),
    VOLUME: await bench.makeVolume(),
    DEPLOYMENT: deployment,
    MACHINE: machine,
  };
});
afterAll(() => sandbox.close());
afterEach(() => sandbox.faults.clear());

/** The ids in place of their names. */
function filled<T>(value: T): T {
  const text = JSON.stringify(value).replace(/\b[A-Z]{6,}\b/g, (name) => ids[name] ?? name);
  return JSON.parse(text) as T;
}

const arm = (fault: FaultName, options: object) => sandbox.faults.arm(fault, filled(options));

describe('a fault that can never strike is refused [sandbox-refused-faults]', () => {
  it.each<[string, FaultName, object, string]>([
    [
      'an unknown account',
      'http-500',
      { account: 'acount-1' },
      'account: there is no account acount-1: did you mean account-1? there is default, marketplace, account-1, account-2',
    ],
    [
      'an unknown provider',
      'http-500',
      { provider: 'z' },
      'provider: expected one of provider-d, provider-e, provider-b, marketplace',
    ],
    [
      'a misspelt route',
      'http-500',
      { route: 'GET /instance/{id}' },
      'route: provider-d has no GET /instance/{id}: the nearest are GET /instances/{instanceId}',
    ],
    [
      'a method that a route does not have',
      'http-500',
      { route: 'PATCH /instances/{id}' },
      'route: provider-d has no PATCH /instances/{id}: the nearest are',
    ],
    [
      'one misspelt route among others',
      'http-500',
      { route: ['GET /instances', 'POST /instance'] },
      'route: provider-d has no POST /instance: the nearest are POST /instances',
    ],
    [
      'a route of the marketplace without it as provider',
      'http-500',
      { route: 'GET /deployments/{id}' },
      'route: only marketplace has GET /deployments/{id}: give that as provider',
    ],
    [
      'a fault at the marketplace that has none of its routes',
      'capacity-gone',
      { provider: 'marketplace' },
      'route: marketplace has none of POST /instances: give a route',
    ],
    [
      'a fault of machines at the marketplace',
      'spot-reclaim',
      { provider: 'marketplace' },
      'provider: this fault strikes only at providers: expected one of provider-d, provider-e, provider-b',
    ],
    [
      'an unknown instance',
      'false-404',
      { instance: 'inst-1', provider: 'd' },
      'instance: there is no instance inst-1 at provider-d: ',
    ],
    [
      'an unknown volume',
      'attach-lies',
      { volume: 'vol-1' },
      'volume: there is no volume vol-1 at provider-d, provider-e, provider-b: ',
    ],
    [
      'a volume as an instance',
      'false-404',
      { instance: 'VOLUME' },
      'instance: VOLUME is a volume: give it as volume',
    ],
    [
      'an instance of another provider',
      'spot-reclaim',
      { instance: 'INSTANCE', provider: 'e' },
      'instance: INSTANCE is at provider-d: give that as provider',
    ],
    [
      'a deployment as an instance',
      'spot-reclaim',
      { instance: 'DEPLOYMENT' },
      'instance: DEPLOYMENT is at marketplace: give that as provider, or its instance MACHINE at provider-b',
    ],
    [
      'a machine of another account',
      'spot-reclaim',
      { instance: 'INSTANCE', account: 'account-2' },
      'instance: INSTANCE is of the account account-1, not of account-2',
    ],
    [
      'an instance and a volume',
      'http-500',
      { instance: 'INSTANCE', volume: 'VOLUME' },
      'volume: give an instance or a volume, not both',
    ],
    [
      'a route without the instance',
      'http-500',
      { instance: 'INSTANCE', route: 'POST /instances' },
      'route: POST /instances concerns no single instance: leave out instance, or give another route',
    ],
    [
      'a listing of an account',
      'platform-empty-list',
      { account: 'account-1' },
      'account: list, volumes.list concerns the whole platform, and no account: leave it out',
    ],
    [
      'what all accounts share, for one of them',
      'credential-revoked',
      { account: 'account-1' },
      'account: all accounts share the platform’s credential: leave it out',
    ],
    [
      'a handshake of an account',
      'certificate-expired',
      { account: 'account-1' },
      'account: leave it out: a fault of TLS strikes the whole sandbox',
    ],
    [
      'a handshake of a provider',
      'handshake-reset',
      { provider: 'd' },
      'provider: leave it out: a fault of TLS strikes the whole sandbox',
    ],
    [
      'a volume for a call about machines',
      'stop-stuck',
      { volume: 'VOLUME' },
      'volume: this fault strikes stop, and no single volume: leave it out',
    ],
    [
      'a volume for a fault of machines',
      'spot-reclaim',
      { volume: 'VOLUME' },
      'volume: this fault strikes machines, and no single volume: leave it out',
    ],
  ])('%s', async (_what, fault, options, words) => {
    await expect(arm(fault, options)).rejects.toThrow(filled(words));
    expect(sandbox.faults.list()).toEqual([]);
  });

  it('also through the control API, with the field', async () => {
    const refused = { status: 400, message: expect.stringContaining('account: there is no account nobody') };
    await expect(sandbox.control.faults.arm('http-500', { account: 'nobody' })).rejects.toMatchObject(
      refused,
    );
    await expect(sandbox.control.weather.start({ account: 'nobody' })).rejects.toMatchObject(refused);
  });
});

describe('a fault that can strike is armed', () => {
  it.each<[string, FaultName, object]>([
    ['a route with its base path', 'http-500', { route: 'GET /v1/instances/{id}' }],
    ['a route of an extension', 'http-500', { route: 'GET /x/changes' }],
    ['a route with a concrete id', 'http-500', { route: 'GET /instances/INSTANCE' }],
    ['any method of a path', 'http-500', { route: '* /instances' }],
    ['a deployment at the marketplace', 'http-500', { provider: 'marketplace', instance: 'DEPLOYMENT' }],
    ['an instance in a list', 'partial-list', { instance: 'INSTANCE' }],
    ['a volume', 'destroy-stuck', { volume: 'VOLUME', account: 'account-1' }],
    [
      'a machine of a tenant of the marketplace',
      'spot-reclaim',
      { instance: 'MACHINE', account: 'account-2', skip: 9 },
    ],
  ])('%s', async (_what, fault, options) => {
    await arm(fault, options);
    expect(sandbox.faults.list()).toMatchObject([{ fault }]);
  });

  it('an instance that is gone: its route can still be asked', async () => {
    const id = await bench.make('two');
    await bench.ask('DELETE', `/instances/${id}`);
    await bench.until(id, 'GONE');
    await sandbox.faults.arm('http-500', { instance: id });
    expect((await bench.read(id)).status).toBe(500);
  });
});
