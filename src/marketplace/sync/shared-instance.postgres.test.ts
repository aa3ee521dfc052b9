import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { deployment, intent, seed, volume } from '../../../test/support/rows/marketplace-rows.ts';
import type { Volume as ProviderVolume } from '../../contract/volume.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { type Market, marketOn, publicKey } from '../deployments/market.fixture.ts';
import type { Store } from '../model/store.ts';
import { readProvider } from '../volumes/seven-providers.fixture.ts';
import { adopt } from './launch.ts';
import { syncVolume } from './volumes/sync-volume.ts';
import { contextOf } from './worker.fixture.ts';

const ROUNDS = 20;

let server: PostgresServer;
let stores: Store[];
let servers: Omit<Market, 'close'>[];

beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase('marketplace');
  stores = [await openMarketplacePostgresStore(url), await openMarketplacePostgresStore(url)];
  await seed(stores[0] as Store);
  servers = stores.map((store) => marketOn(store));
  for (const { worker } of servers) worker.stop();
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server[Symbol.asyncDispose]();
});

it('gives an instance to one of two deployments that adopt it at the same moment, and fails the other [shared-instance-replicas]', async () => {
  const { plain, clock } = servers[0] as Market;
  for (let round = 0; round < ROUNDS; round++) {
    const instance = plain.create({ configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: [publicKey] });
    const launch = { state: 'sent', request: null, sentAt: clock.now() } as const;
    const ids = [`dep-${round}-a`, `dep-${round}-b`];
    await stores[0]?.transact(async (tx) => {
      for (const id of ids)
        await tx.deployments.insert(
          deployment({ id, providerName: id, providerId: 'provider-x', createdAt: clock.now(), launch }),
        );
    });
    await Promise.all(
      servers.map(({ deps, provider }, index) =>
        adopt(contextOf(deps, provider), ids[index] as string, instance),
      ),
    );
    const records = await Promise.all(ids.map((id) => stores[0]?.read.deployments.byId(id)));
    const outcomes = records.map((it) => [it?.status, it?.providerInstanceId, it?.failureReason]);
    expect(outcomes).toHaveLength(2);
    expect(outcomes).toEqual(
      expect.arrayContaining([
        ['deploying', instance.id, null],
        ['failed', null, 'provider_error'],
      ]),
    );
  }
});

it('gives a volume to one of two creates that are answered with its id at the same moment, and fails the other [shared-volume-replicas]', async () => {
  const { volumes } = readProvider('a').profile;
  for (let round = 0; round < ROUNDS; round++) {
    const made: ProviderVolume = {
      id: `v-${round}`,
      name: 'data',
      size_gb: 100,
      region: 'us-dallas',
      status: 'AVAILABLE',
    };
    const ids = [`vol-${round}-a`, `vol-${round}-b`];
    const action = intent('create', { attempt: 0 });
    const fields = { providerId: 'provider-x', region: 'us-dallas', providerVolumeId: null, startedAt: null };
    await stores[0]?.transact(async (tx) => {
      for (const id of ids) await tx.volumes.insert(volume({ ...fields, id, status: 'creating', action }));
    });
    await Promise.all(
      servers.map(({ deps, provider }, index) => {
        const client = withOverrides(provider.client, { createVolume: async () => made });
        const ofVolumes = { ...provider, client, profile: { ...provider.profile, volumes } };
        return syncVolume(contextOf(deps, ofVolumes), ids[index] as string);
      }),
    );
    const records = await Promise.all(ids.map((id) => stores[0]?.read.volumes.byId(id)));
    const outcomes = records.map((it) => [it?.status, it?.providerVolumeId]);
    expect(outcomes.toSorted()).toEqual([
      ['creating', made.id],
      ['error', null],
    ]);
  }
});
