import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PlainProvider, type PlainProviderOptions } from '../../../test/support/doubles/plain-provider.ts';
import { PlainSsh } from '../../../test/support/doubles/plain-ssh.ts';
import { steadyRandom } from '../../../test/support/doubles/random.ts';
import { plainConfigurations } from '../../../test/support/rows/configurations.ts';
import {
  intent,
  member,
  runningDeployment,
  seed,
  team,
  user,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Configuration } from '../../contract/configuration.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { defaultOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import { toAttachment } from '../model/volume-record.ts';
import { noMarkups } from '../providers/markup.ts';
import { gpuTypes } from '../providers/offer.fixture.ts';
import { providerProfileSchema } from '../providers/profile.ts';
import type { CatalogOffer, Provider } from '../providers/provider.ts';
import { toCatalogOffer } from '../providers/to-catalog-offer.ts';
import { WokenWorker } from '../sync/worker.fixture.ts';

const HOUR_MS = 3_600_000;

/** `usr-1` owns `team-1`, which has 1000 USD; `usr-2` belongs to `team-2` only. */
export const caller = { userId: 'usr-1' };
export const stranger = { userId: 'usr-2' };

export const publicKey =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGOFtsMNVrpnI1jLZ4pJqvGY8lfEGhf3GY0bCMEEmZbe laptop';

/** A valid create body. */
export const wanted = {
  provider: 'provider-x',
  offerId: 'gpu-1',
  gpuCount: 1,
  region: 'eu-one',
  operatingSystem: 'ubuntu-24.04',
  ssh_public_key: publicKey,
};

export interface Market {
  deps: Deps;
  clock: VirtualClock;
  store: Store;
  plain: PlainProvider;
  ssh: PlainSsh;
  provider: Provider & { catalog: { refreshedAt: number | null; offers: Map<string, CatalogOffer> } };
  /** Sends the intents that requests write. */
  worker: WokenWorker;
  /** The ids for which the worker was woken. */
  woken: readonly string[];
  close(): Promise<void>;
}

/**
 * A market with one provider, `provider-x`, which supports stopping all types but SPOT and restarting all but
 * BARE_METAL.
 */
export async function openMarket(options: PlainProviderOptions = {}): Promise<Market> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-market-'));
  const file = join(folder, 'market.db');
  await putEmptyDatabase('marketplace', file);
  const store = openMarketplaceSqliteStore(file);
  await seed(store, 1_000_000_000);
  await store.transact(async (tx) => {
    await tx.users.insert(user({ id: 'usr-2', currentTeamId: 'team-2' }));
    await tx.teams.insert(team({ id: 'team-2', ownerId: 'usr-2' }));
    await tx.teams.putMember(member({ teamId: 'team-2', userId: 'usr-2' }));
  });
  const close = async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  };
  return { ...marketOn(store, options), close };
}

/** Like {@link openMarket}, on a store that the caller seeds and closes. */
export function marketOn(store: Store, options: PlainProviderOptions = {}): Omit<Market, 'close'> {
  const clock = new VirtualClock();
  const plain = new PlainProvider(clock, options);
  const ssh = new PlainSsh(plain, clock);
  const offers = new Map(plainConfigurations.map((it) => [it.id, toOffer(it)]));
  const provider = {
    id: 'provider-x',
    profile,
    client: plain.client,
    sshProbe: ssh.probe as SshProbe | null,
    markups: noMarkups,
    catalog: { refreshedAt: clock.now() as number | null, offers, volumeLocations: [] },
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const deps: Deps = {
    store,
    clock,
    log,
    random: steadyRandom(),
    options: defaultOptions,
    installationId: '00c0ffee',
    providers: { ids: () => [provider.id], get: (id) => (id === provider.id ? provider : undefined) },
  };
  const worker = new WokenWorker(deps, provider);
  return { deps, clock, store, plain, ssh, provider, worker, woken: worker.woken };
}

/** Adds a deployment of `usr-1` that has run at the provider for an hour. */
export async function deploy(
  { store, clock, plain }: Market,
  changes: Partial<DeploymentRecord> = {},
): Promise<DeploymentRecord> {
  const { offerId = 'gpu-1' } = changes;
  const { id } = plain.create({ configuration_id: offerId, region: 'eu-one', ssh_keys: [publicKey] });
  await clock.advance(plain.options.bootMs);
  plain.get(id);
  const startedAt = clock.now();
  await clock.advance(HOUR_MS);
  const record = runningDeployment({
    providerId: 'provider-x',
    offerId,
    region: 'eu-one',
    providerInstanceId: id,
    createdAt: startedAt,
    startedAt,
    observedAt: clock.now(),
    ...changes,
  });
  await store.transact((tx) => tx.deployments.insert(record));
  return read({ store }, record.id);
}

/** Like {@link deploy}, then stopped for an hour here and at the provider. */
export async function deployStopped(
  market: Market,
  changes: Partial<DeploymentRecord> = {},
): Promise<DeploymentRecord> {
  const { clock, plain } = market;
  const record = await deploy(market, {
    status: 'stopped',
    pausedAt: clock.now() + 2 * HOUR_MS,
    originalStoppedRateMicroUsd: 500_000,
    stoppedRateMicroUsd: 500_000,
    ...changes,
  });
  plain.set(record.providerInstanceId ?? '', { status: 'STOPPED' });
  await clock.advance(2 * HOUR_MS + 45_000);
  return record;
}

/** The deployment as it is stored. */
/** Begins to attach a volume to `dep-1`. */
export async function beginAttach({ store, clock }: Market): Promise<void> {
  const attach = { ...intent('attach', { since: clock.now() }), deploymentId: 'dep-1' };
  await store.transact(async (tx) => {
    await tx.volumes.insert(volume({ providerId: 'provider-x', status: 'attached' }));
    await tx.volumes.putAttachment(toAttachment({ id: 'vol-1' }, 'dep-1', attach));
  });
}

export async function read({ store }: Pick<Market, 'store'>, id = 'dep-1'): Promise<DeploymentRecord> {
  const record = await store.read.deployments.byId(id);
  if (record === null) throw new Error(`there is no ${id}`);
  return record;
}

/** The fields that must be unchanged where an answer says "nothing changed". */
export function withoutRevision({ revision: _, observedAt: __, refusal: ___, ...record }: DeploymentRecord) {
  return record;
}

/** Advances the clock until the promise settles. Returns its value or its error. */
export async function outcomeOf<T>(clock: VirtualClock, promise: Promise<T>): Promise<T | Error> {
  let outcome: T | Error | undefined;
  promise.then(
    (value) => {
      outcome = value;
    },
    (error: Error) => {
      outcome = error;
    },
  );
  for (let seconds = 0; outcome === undefined && seconds < 120; seconds++) await clock.advance(1_000);
  if (outcome === undefined) throw new Error('it is not settled after two minutes');
  return outcome;
}

const profile = providerProfileSchema.parse({
  id: 'provider-x',
  name: 'Provider X',
  machines: [
    { instance_types: ['SPOT'], no_stop: 'Provider X cannot stop spot instances.' },
    {
      instance_types: ['BARE_METAL'],
      no_restart: 'Provider X cannot restart bare metal.',
      minimum_reservation_minutes: 1_440,
    },
    { deploy_timeout_minutes: 15 },
  ],
  volumes: null,
});

function toOffer(configuration: Configuration): CatalogOffer {
  const offer = toCatalogOffer(configuration, {
    profile,
    gpuTypes,
    markups: noMarkups,
    inStockRegions: ['eu-one'],
    onProblem: () => undefined,
  });
  return { ...offer, supportsCloudInit: offer.gpuCount > 0 };
}
