import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { discount, member, sshKey, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { createDeploymentSchema, deploymentSchema } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Store } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { providerProfileSchema } from '../providers/profile.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { removeMember } from '../teams/members.ts';
import { createDeployment } from './create.ts';
import { caller, type Market, openMarket, publicKey, read, stranger, wanted } from './market.fixture.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

/** Creates from a body parsed as the HTTP routes do it. */
const create = (body: object, by = caller) =>
  createDeployment(market.deps, by, createDeploymentSchema.parse(body));

function changeOffer(changes: Partial<CatalogOffer>, id = 'gpu-1'): void {
  const { offers } = market.provider.catalog;
  offers.set(id, { ...(offers.get(id) as CatalogOffer), ...changes });
}

/** Checks that nothing was written or sent, and that no worker was woken. */
async function expectNothing(): Promise<void> {
  const { read: stored } = market.store;
  expect(await stored.deployments.list({})).toEqual([]);
  expect(market.plain.faults.calls).toEqual([]);
  expect(market.woken).toEqual([]);
}

it('answers deploying at once, without an address, and leaves the provider to its worker [create-answers-deploying]', async () => {
  const deployment = await create(wanted);
  expect(deploymentSchema.parse(deployment)).toEqual(deployment);
  expect(deployment).toMatchObject({
    status: 'deploying',
    ipAddress: null,
    user: null,
    sshCommand: null,
    sshPort: null,
    userId: 'usr-1',
    teamId: 'team-1',
    providerId: 'provider-x',
    offerId: 'gpu-1',
    gpuType: 'H100_SXM',
    gpuCount: 1,
    region: 'eu-one',
    operatingSystem: 'ubuntu-24.04',
    instanceType: 'DEDICATED',
    startedAt: null,
    stoppedAt: null,
    pausedAt: null,
    lastCreditDeduction: null,
    totalPausedHours: 0,
    totalCost: 0,
    hourlyRate: 2,
    originalHourlyRate: 2,
    discountPercentage: 0,
    hasDiscount: false,
    stoppedHourlyRate: null,
    portForwards: [],
    vcpus: 8,
    memory: 64,
    storage: 500,
    supportsPause: true,
    supportsRestart: true,
    pauseUnsupportedReason: null,
    providerMinimumRuntimeMinutes: null,
  });
  expect(market.plain.faults.calls).toEqual([]);
  expect(market.woken).toEqual([expect.stringMatching(/^dep-/)]);
});

it('stores the request for the provider, with a name unique to this marketplace', async () => {
  const { id } = await create({ ...wanted, name: 'My ☃ box; rm -rf /' });
  const record = await read(market, id);
  expect(record.providerName).toBe(`bm-00c0ffee-${id.slice(4)}`);
  expect(record.launch).toEqual({
    state: 'wanted',
    sentAt: null,
    request: {
      configuration_id: 'gpu-1',
      region: 'eu-one',
      ssh_keys: [publicKey],
      name: record.providerName,
      operating_system_image: 'ubuntu-24.04',
    },
  });
});

describe('an offer whose provider names no image (O: `os_options` is optional)', () => {
  it('is deployed with "default", and the provider takes its own', async () => {
    changeOffer({ osOptions: [] });
    const { id, operatingSystem } = await create({ ...wanted, operatingSystem: 'default' });
    expect(operatingSystem).toBe('default');
    expect((await read(market, id)).launch.request).not.toHaveProperty('operating_system_image');
  });

  it('refuses any other name, and names the accepted one', async () => {
    changeOffer({ osOptions: [] });
    await expect(create(wanted)).rejects.toMatchObject({
      details: { issues: [{ path: 'operatingSystem', message: 'expected an image of the offer: default' }] },
    });
    await expectNothing();
  });

  it('sends "default" where an offer has an image of that name', async () => {
    changeOffer({ osOptions: ['default'] });
    const { id } = await create({ ...wanted, operatingSystem: 'default' });
    expect((await read(market, id)).launch.request).toMatchObject({ operating_system_image: 'default' });
  });
});

describe('the label', () => {
  it.each([
    ['any text', 'Größe ☃ "quoted" <b> ; $(reboot) \n\t'],
    ['nothing', ''],
    ['a very long one', 'x'.repeat(100_000)],
    ['a NUL', 'a\u0000b'],
    ['half of a surrogate pair', 'a\ud800b'],
  ])('is stored verbatim: %s [label-kept-verbatim]', async (_, name) => {
    const { id } = await create({ ...wanted, name });
    expect((await read(market, id)).name).toBe(name);
  });

  it('is a readable one where none was sent [label-default]', async () => {
    expect((await create(wanted)).name).toMatch(/^h100_sxm-eu-one-[0-9a-f]{4}$/);
  });
});

describe('gpuType', () => {
  it('is resolved from the offer where it was left out [gpu-type-resolved]', async () => {
    expect((await create({ ...wanted, offerId: 'cpu-1', gpuCount: 0 })).gpuType).toBe('CPU');
  });

  it.each([
    ['CPU', 'gpu-1', 1],
    ['A100', 'gpu-1', 1],
    ['H100', 'cpu-1', 0],
  ])('%s does not match the offer %s: 400 [gpu-type-mismatch]', async (gpuType, offerId, gpuCount) => {
    await expect(create({ ...wanted, gpuType, offerId, gpuCount })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(/^gpuType: /),
    });
    await expectNothing();
  });
});

describe('instanceType', () => {
  it.each([
    ['dedicated', 'gpu-1', 1, 'DEDICATED'],
    ['Spot', 'gpu-spot', 1, 'SPOT'],
    ['DEDICATED', 'metal-1', 8, 'BARE_METAL'],
    [undefined, 'metal-1', 8, 'BARE_METAL'],
  ])('%s fits %s [instance-type-fits]', async (instanceType, offerId, gpuCount, expected) => {
    const deployment = await create({ ...wanted, instanceType, offerId, gpuCount });
    expect(deployment.instanceType).toBe(expected);
  });
});

describe('a value that does not match the offer is a 400 that names the field, and nothing is created', () => {
  it.each([
    ['an unknown provider [create-unknown-provider]', { provider: 'provider-z' }, 'provider'],
    ['an unknown offer [create-unknown-offer]', { offerId: 'gpu-9' }, 'offerId'],
    ['another gpuCount [create-gpu-count-mismatch]', { gpuCount: 2 }, 'gpuCount'],
    ['a region that the offer does not have [create-region-mismatch]', { region: 'mars' }, 'region'],
    [
      'an image that the offer does not have [create-unknown-image]',
      { operatingSystem: 'windows-11' },
      'operatingSystem',
    ],
    ['another instanceType [create-instance-type-mismatch]', { instanceType: 'SPOT' }, 'instanceType'],
    [
      'cloud-init for an offer without it [create-cloud-init-unsupported]',
      { offerId: 'cpu-1', gpuCount: 0, cloudInit: { runcmd: ['true'] } },
      'cloudInit',
    ],
    ['no key [create-no-key]', { ssh_public_key: undefined }, 'sshKeyId'],
    ['two keys [create-two-keys]', { sshKeyId: 'ssh-1' }, 'sshKeyId'],
    [
      'an inline key that is none [create-malformed-key]',
      { ssh_public_key: 'ssh-ed25519 nonsense' },
      'ssh_public_key',
    ],
  ])('%s', async (_, changes, path) => {
    const error = await create({ ...wanted, ...changes }).catch((it) => it);
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', status: 400 });
    expect(error.details.issues[0].path).toBe(path);
    await expectNothing();
  });

  it.each([
    ['ssh_public_key', 7],
    ['ssh_public_key', null],
    ['gpuCount', '1'],
    ['gpuCount', undefined],
    ['region', undefined],
    ['operatingSystem', undefined],
    ['provider', undefined],
    ['offerId', undefined],
    ['instanceType', 'WARP'],
    ['volumeIds', 'vol-1'],
    ['cloudInit', { writeFiles: [{ path: 'relative', content: '' }] }],
  ])('%s: %j is refused as a body [create-body-refused]', (field, value) => {
    const result = createDeploymentSchema.safeParse({ ...wanted, [field]: value });
    expect(result.error?.issues[0]?.path[0]).toBe(field);
  });

  it('names all mismatching fields at once', async () => {
    const error = await create({ ...wanted, gpuCount: 3, region: 'mars' }).catch((it) => it);
    expect(error.details.issues.map((issue: { path: string }) => issue.path)).toEqual(['gpuCount', 'region']);
  });
});

it('a create at a provider whose catalog is not known yet is 503, and nothing is created [create-catalog-unknown]', async () => {
  Object.assign(market.provider.catalog, { refreshedAt: null });
  await expect(create(wanted)).rejects.toMatchObject({ status: 503, code: 'UNAVAILABLE' });
  await expectNothing();
});

describe('out of stock is a 400 that says so, and nothing is created', () => {
  it.each([
    ['sold out in the region', () => changeOffer({ inStockRegions: ['us-two'] })],
    ['in maintenance', () => changeOffer({ maintenance: true })],
  ])('%s', async (_, change) => {
    change();
    await expect(create(wanted)).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { reason: 'out_of_stock' },
    });
    await expectNothing();
  });
});

describe('an inline key', () => {
  it('makes a temporary key that no list shows [inline-key-is-temporary]', async () => {
    const deployment = await create(wanted);
    expect(deployment.tempSshKeyId).toBe(deployment.sshKeyId);
    expect(deployment).toMatchObject({ sshKeyName: 'laptop' });
    expect(await market.store.read.sshKeys.byId(deployment.sshKeyId)).toMatchObject({
      isTemporary: true,
      publicKey,
      fingerprint: deployment.sshKeyFingerprint,
      teamId: 'team-1',
    });
    expect(await market.store.read.sshKeys.list({ teamIds: ['team-1'] })).toEqual([]);
  });

  it('of another deployment cannot be used as a saved one', async () => {
    const { sshKeyId } = await create(wanted);
    await expect(create({ ...wanted, ssh_public_key: undefined, sshKeyId })).rejects.toMatchObject({
      status: 400,
    });
  });
});

describe('a saved key', () => {
  const withKey = (sshKeyId: string) => ({ ...wanted, ssh_public_key: undefined, sshKeyId });

  it('is installed on the instance [saved-key-used]', async () => {
    await market.store.transact((tx) => tx.sshKeys.insert(sshKey({ publicKey })));
    const { id, ...deployment } = await create(withKey('ssh-1'));
    expect(deployment).toMatchObject({ sshKeyId: 'ssh-1', tempSshKeyId: null, sshKeyName: 'laptop' });
    expect((await read(market, id)).launch.request?.ssh_keys).toEqual([publicKey]);
  });
});

describe('the team', () => {
  it('needs a balance', async () => {
    await expect(create(wanted, stranger)).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { reason: 'insufficient_balance' },
    });
    await expectNothing();
  });

  it('pays the price less its discount [create-team-discount]', async () => {
    const startsAt = market.clock.now();
    await market.store.transact((tx) => tx.discounts.insert(discount({ percentage: 15, startsAt })));
    expect(await create(wanted)).toMatchObject({
      hourlyRate: 1.7,
      originalHourlyRate: 2,
      discountPercentage: 15,
      hasDiscount: true,
    });
  });
});

it('checks the body before tenancy, tenancy before the balance, the balance before the stock', async () => {
  changeOffer({ maintenance: true });
  const broke = { ...wanted, teamId: 'team-2' };
  const statusAndReason = (body: object, by = caller) =>
    create(body, by).catch((error) => [error.status, error.details?.reason]);
  expect(await statusAndReason({ ...broke, gpuCount: 3 })).toEqual([400, undefined]);
  expect(await statusAndReason(broke)).toEqual([403, undefined]);
  expect(await statusAndReason(broke, stranger)).toEqual([400, 'insufficient_balance']);
  expect(await statusAndReason(wanted)).toEqual([400, 'out_of_stock']);
});

it('maps cloudInit, and keeps the spot price of a SPOT offer [create-cloud-init-and-spot]', async () => {
  const { id, hourlyRate } = await create({
    ...wanted,
    offerId: 'gpu-spot',
    cloudInit: { writeFiles: [{ path: '/etc/motd', content: 'hi' }] },
  });
  expect(hourlyRate).toBe(1);
  expect((await read(market, id)).launch.request?.cloud_init).toEqual({
    write_files: [{ path: '/etc/motd', content: 'hi' }],
  });
});

it('shows the minimum reservation of the machine type [minimum-reservation-shown]', async () => {
  const deployment = await create({ ...wanted, offerId: 'metal-1', gpuCount: 8 });
  expect(deployment.providerMinimumRuntimeMinutes).toBe(1_440);
});

describe('volumes', () => {
  const sellVolumes = () => {
    const text = readFileSync(
      new URL('../../../fixtures/providers/provider-d.yaml', import.meta.url),
      'utf8',
    );
    const { volumes } = providerProfileSchema.parse(parse(text));
    market.provider.profile = { ...market.provider.profile, volumes };
  };
  const keep = (changes: Partial<VolumeRecord>) =>
    market.store.transact((tx) =>
      tx.volumes.insert(volume({ providerId: 'provider-x', region: 'eu-one', ...changes })),
    );

  it('are asked of the provider by its own ids, and are the deployment’s from then on [create-volumes-by-provider-ids]', async () => {
    sellVolumes();
    await keep({});
    const { id } = await create({ ...wanted, volumeIds: ['vvol-1'] });
    expect((await read(market, id)).launch.request?.volume_ids).toEqual(['pv-vol-1']);
    expect(await market.store.read.volumes.attachmentsOf({ deploymentId: id })).toMatchObject([
      { volumeId: 'vol-1', deploymentId: id, state: 'attaching' },
    ]);
    await expect(create({ ...wanted, volumeIds: ['vvol-1'] })).rejects.toBeInstanceOf(ApiError);
  });

  it('of another region are rejected, and nothing is created [create-volume-other-region]', async () => {
    sellVolumes();
    await keep({ region: 'us-two' });
    await expect(create({ ...wanted, volumeIds: ['vvol-1'] })).rejects.toMatchObject({ status: 400 });
    await expectNothing();
  });

  it('are rejected where the provider has none, rather than deploying without them [create-volumes-unsupported]', async () => {
    await expect(create({ ...wanted, volumeIds: ['vol-1'] })).rejects.toMatchObject({ status: 400 });
    await expectNothing();
  });
});

it('creates nothing for a user who is removed from the team during the create [removed-within-create]', async () => {
  const { deps, store } = market;
  await store.transact((tx) => tx.teams.putMember({ ...member(), userId: stranger.userId, role: 'member' }));
  const transact: Store['transact'] = async (body) => {
    await removeMember({ store }, { user: stranger.userId, team: 'team-1' });
    return store.transact(body);
  };
  const late = { ...deps, store: { ...store, transact } };
  const body = createDeploymentSchema.parse({ ...wanted, teamId: 'team-1' });
  await expect(createDeployment(late, stranger, body)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await expectNothing();
});
