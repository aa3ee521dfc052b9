import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { PlainProvider as Plain, type PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import { plainConfigurations } from '../../../test/support/rows/configurations.ts';
import {
  member,
  now,
  runningDeployment,
  seed,
  team,
  teamId,
  user,
  userId,
} from '../../../test/support/rows/marketplace-rows.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { parseCatalogFile } from '../../orchestrator/catalog/catalog.ts';
import type { CatalogFile } from '../../orchestrator/catalog/catalog-schema.ts';
import type { Log } from '../../ports/log.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { fencedStore } from '../model/fenced-store.ts';
import { defaultOptions } from '../model/options.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { noMarkups } from '../providers/markup.ts';
import { gpuTypes } from '../providers/offer.fixture.ts';
import { type ProviderProfile, providerProfileSchema } from '../providers/profile.ts';
import type { CatalogOffer, Provider } from '../providers/provider.ts';
import { toCatalogOffer } from '../providers/to-catalog-offer.ts';
import { syncDeployment } from '../sync/sync-deployment.ts';
import { contextOf, WokenWorker } from '../sync/worker.fixture.ts';
import { attachAtLaunch, planLaunchVolumes } from './attach.ts';
import { createVolume } from './create.ts';

export const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g'] as const;
export const caller = { userId };
/** A user of another team. */
export const stranger = { userId: 'usr-2' };

function fixture(kind: 'providers' | 'catalogs', letter: string): unknown {
  const url = new URL(`../../../fixtures/${kind}/provider-${letter}.yaml`, import.meta.url);
  return parse(readFileSync(url, 'utf8'));
}

const known = new Map<string, ReturnType<typeof parseProvider>>();

/** The profile and the catalog of one of the seven providers, from the files. */
export function readProvider(letter: string) {
  const read = known.get(letter) ?? parseProvider(letter);
  known.set(letter, read);
  return read;
}

function parseProvider(letter: string) {
  const parsed = parseCatalogFile(fixture('catalogs', letter));
  if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues));
  return { profile: providerProfileSchema.parse(fixture('providers', letter)), file: parsed.file };
}

function locationsOf({ regions }: CatalogFile) {
  return Object.entries(regions).flatMap(([id, { name, country_code: countryCode, volume_types: types }]) =>
    types.length === 0
      ? []
      : [{ id, name, types: types.map((it) => it.name), countryCode: countryCode ?? null }],
  );
}

function toOffer(
  profile: ProviderProfile,
  { capacity, ...offer }: CatalogFile['offers'][number],
): CatalogOffer {
  const regions = Object.keys(capacity);
  const announced = { berth: { restart: true, volume_resize: true } };
  const changes = { price_per_hour: 1, available: true, supports_cloud_init: true, extras: announced };
  return toCatalogOffer({ ...offer, ...changes, regions } as Configuration, {
    profile,
    gpuTypes,
    markups: noMarkups,
    inStockRegions: regions.filter((region) => (capacity[region] ?? 0) > 0),
    onProblem: () => undefined,
  });
}

export interface World {
  clock: VirtualClock;
  deps: Deps;
  logged: { level: string; message: string; fields: Record<string, unknown> }[];
  /** A worker of the provider in another server, which gets no notifications. */
  anotherWorker: (letter: string) => WokenWorker;
  /** Gives the provider's lease to another process: its worker here can no longer write. */
  loseLease: (letter: string) => Promise<void>;
  /** Syncs each volume of a provider once. */
  sync: (letter: string) => Promise<void>;
  /** Polls a deployment once. */
  pollDeployment: (letter: string, id: string) => Promise<unknown>;
  plain: (letter: string) => PlainProvider;
  provider: (letter: string) => Provider;
  /** The calls to all providers that change something. */
  writes: () => string[];
  /** Advances the clock until the promise settles. */
  settle: <T>(promise: Promise<T>) => Promise<T>;
  /** Returns `done`, or the code of the error. */
  codeOf: (promise: Promise<unknown>) => Promise<string>;
  /** Adds a running deployment with an instance at the provider. */
  deploy: (letter: string, region: string, changes?: Partial<DeploymentRecord>) => Promise<DeploymentRecord>;
  /** Changes a deployment as its own use cases would. */
  update: (id: string, changes: Partial<DeploymentRecord>) => Promise<void>;
  volumes: () => Promise<VolumeRecord[]>;
  close: () => Promise<void>;
}

/**
 * A marketplace store with the seven providers, and one team with `balanceMicroUsd` to spend. In memory, reads outside
 * a transaction see its uncommitted writes: that is for tests without concurrency.
 */
export async function openWorld({ balanceMicroUsd = 100_000_000, isInMemory = false } = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-volumes-'));
  const file = isInMemory ? ':memory:' : join(folder, 'marketplace.db');
  if (!isInMemory) await putEmptyDatabase('marketplace', file);
  const store = openMarketplaceSqliteStore(file);
  const clock = new VirtualClock(now);
  await seed(store, balanceMicroUsd);
  await store.transact(async (tx) => {
    await tx.users.insert(user({ id: stranger.userId, currentTeamId: 'team-2' }));
    await tx.teams.insert(team({ id: 'team-2', ownerId: stranger.userId }));
    await tx.teams.putMember(member({ teamId: 'team-2', userId: stranger.userId }));
  });
  const plains = new Map<string, PlainProvider>();
  const providers = new Map<string, Provider>();
  for (const letter of letters) {
    const { profile, file } = readProvider(letter);
    const locations = locationsOf(file);
    const plain = new Plain(clock, {
      configurations: plainConfigurations.map((it) => ({ ...it, regions: Object.keys(file.regions) })),
      volumeLocations: locations.map(({ id, name, types }) => ({ id, name, types })),
      bootMs: 0,
      volumeMs: 2_000,
    });
    const offers = file.offers.map((offer) => toOffer(profile, offer));
    plains.set(profile.id, plain);
    providers.set(profile.id, {
      id: profile.id,
      profile,
      client: plain.client,
      sshProbe: null,
      markups: noMarkups,
      catalog: {
        refreshedAt: now,
        offers: new Map(offers.map((offer) => [offer.offerId, offer])),
        volumeLocations: locations,
      },
    });
  }
  const plain = (letter: string) => plains.get(`provider-${letter}`) as PlainProvider;
  const logged: World['logged'] = [];
  const say = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, message, fields: { ...fields } });
  const log: Log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  let drawn = 0;
  const random = {
    next: () => 0.5,
    bytes: (length: number) => Buffer.alloc(length, 0).fill(++drawn, length - 1),
  };
  const deps: Deps = {
    store,
    clock,
    random,
    log,
    options: defaultOptions,
    installationId: '0badcafe',
    providers: { ids: () => [...providers.keys()], get: (id) => providers.get(id) },
  };
  const leases = await store.transact((tx) =>
    tx.leases.claim([...providers.keys()], 'first', now, Number.MAX_SAFE_INTEGER - now),
  );
  const workers = new Map(
    leases.map((lease) => {
      const provider = providers.get(lease.name) as Provider;
      return [lease.name, new WokenWorker(deps, provider, fencedStore(store, lease))];
    }),
  );
  const settle: World['settle'] = async (promise) => {
    let isSettled = false;
    const watched = promise.finally(() => {
      isSettled = true;
    });
    watched.catch(() => undefined);
    for (let turn = 0; turn < 500 && !isSettled; turn++) await clock.advance(500);
    return watched;
  };
  return {
    clock,
    deps,
    logged,
    loseLease: (letter) =>
      store.transact(async (tx) => {
        const names = [`provider-${letter}`];
        await tx.leases.release(names, 'first');
        await tx.leases.claim(names, 'second', clock.now(), 30_000);
      }),
    anotherWorker: (letter) => {
      const worker = new WokenWorker(deps, providers.get(`provider-${letter}`) as Provider);
      worker.stop();
      return worker;
    },
    sync: (letter) => (workers.get(`provider-${letter}`) as WokenWorker).syncVolumes(),
    pollDeployment: (letter, id) =>
      syncDeployment(contextOf(deps, providers.get(`provider-${letter}`) as Provider), id),
    plain,
    provider: (letter) => providers.get(`provider-${letter}`) as Provider,
    writes: () =>
      [...plains.values()].flatMap((it) =>
        it.faults.calls.map(({ method }) => method).filter((method) => !/^(get|list)|Status$/.test(method)),
      ),
    settle,
    codeOf: (promise) =>
      settle(promise).then(
        () => 'done',
        (error: { code?: string }) => error.code ?? String(error),
      ),
    deploy: async (letter, region, changes = {}) => {
      const { id: instanceId } = plain(letter).create({
        configuration_id: 'gpu-1',
        region,
        ssh_keys: ['key'],
      });
      plain(letter).get(instanceId);
      const record = runningDeployment({
        id: `dep-${letter}-${instanceId}`,
        providerId: `provider-${letter}`,
        region,
        providerInstanceId: instanceId,
        teamId,
        userId,
        ...changes,
      });
      await store.transact((tx) => tx.deployments.insert(record));
      return record;
    },
    update: (id, changes) =>
      store.transact(async (tx) => {
        const record = await tx.deployments.byId(id);
        if (record !== null) await tx.deployments.update({ ...record, ...changes });
      }),
    volumes: async () => (await store.read.volumes.page({ teamId, offset: 0, limit: 100 })).volumes,
    close: async () => {
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The regions where each provider's volumes are created in these tests. */
export const placeOf: Readonly<Record<string, { region: string; elsewhere: string; cloudId?: string }>> = {
  a: { region: 'us-dallas', elsewhere: 'eu-frankfurt' },
  b: { region: 'us-ashburn', elsewhere: 'eu-paris' },
  c: { region: 'eu-stockholm', elsewhere: 'us-denver', cloudId: 'cloud-stockholm-2' },
  d: { region: 'us-phoenix', elsewhere: 'ap-tokyo' },
  e: { region: 'eu-frankfurt', elsewhere: 'us-ashburn' },
  f: { region: 'us-newark', elsewhere: 'eu-london' },
  g: { region: 'us-chicago', elsewhere: 'ap-seoul' },
};

/** A create body that the provider's rules allow. */
export function bodyFor(letter: string, changes: Record<string, unknown> = {}) {
  const { region, cloudId } = placeOf[letter] as (typeof placeOf)[string];
  return {
    name: 'data',
    sizeInGb: 100,
    provider: `provider-${letter}`,
    region,
    ...(cloudId !== undefined && { cloudId }),
    ...changes,
  };
}

export const makeVolume = (world: World, letter: string, changes = {}) =>
  world.settle(createVolume(world.deps, caller, bodyFor(letter, changes) as never));

/** A deployment that is being launched with these volumes. */
export async function launchWith(
  world: World,
  letter: string,
  volumeIds: string[],
  region = placeOf[letter]?.region ?? '',
) {
  const { store, clock } = world.deps;
  const deployment = await world.deploy(letter, region, { status: 'deploying', startedAt: null });
  await store.transact(async (tx) => {
    const wanted = { caller, teamId: deployment.teamId, provider: world.provider(letter), region, volumeIds };
    const volumes = await planLaunchVolumes(world.deps, tx, wanted);
    await attachAtLaunch(tx, deployment, volumes, clock.now());
  });
  return deployment;
}
