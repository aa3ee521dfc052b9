import { bundledProfileFile, loadProfile } from '../../src/config/marketplace/load-profile.ts';
import { defaultOptions } from '../../src/marketplace/model/options.ts';
import { createOperatorKey } from '../../src/operator-kit/keys.ts';
import type { Offer } from '../../src/orchestrator/catalog/catalog.ts';
import type { Log } from '../../src/ports/log.ts';
import { openMarketplacePostgresStore } from '../../src/store/marketplace/postgres/store.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { clientOf } from '../marketplace/berth-client.ts';
import { startPostgres } from '../support/databases/postgres.ts';
import { silentLog } from '../support/doubles/log.ts';
import { steadyRandom } from '../support/doubles/random.ts';
import { publicKeyFixtures } from '../support/doubles/ssh-keys.ts';
import type { InProcessServer } from '../support/http/in-process-server.ts';
import { startTestMarketplace, type TestProvider } from '../support/marketplace.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { BriskClock } from '../support/time/virtual-clock.ts';

/** Values that a request may name, by the name of the field or parameter: of the catalog, or learnt from replies. */
export type Known = Record<string, unknown[]>;

/** One API, with the document that describes it. */
export interface Target {
  /** Without `.json`. */
  document: string;
  /** Of the paths of the document. */
  prefix: string;
  fetch: InProcessServer['fetch'];
  key: string;
  otherKeys: readonly (readonly [whose: 'other' | 'none', key: string | null])[];
  known: Known;
}

export interface Setting extends AsyncDisposable {
  targets: readonly Target[];
  /** What went wrong besides replies: lines of the logs about errors, and a server that is not ready. */
  faults(): Promise<string[]>;
}

/** The providers of the marketplace, with the volumes that they sell of those in the catalog. */
const VOLUMES = {
  'provider-d': { type: 'nvme', min_size_gb: 10, max_size_gb: 16_000 },
  'provider-e': { type: 'shared-nvme', min_size_gb: 50, max_size_gb: 32_000 },
};

/** Many of what succeeds, a few of what is refused for its meaning. */
const known = (): Known => ({
  name: ['data', 'data-2', 'two words', 'ap-singapore', 'h100-cluster-node'],
  configuration_id: ['cpu-4x16', 'cpu-4x16', 'cpu-4x16', 'cpu-32x128', 'h100-sxm-1x'],
  region: [...Array.from({ length: 9 }, () => 'eu-frankfurt'), 'ap-singapore'],
  operating_system_image: ['ubuntu-24.04', 'ubuntu-24.04', 'ubuntu-24.04', 'debian-13'],
  public_key: publicKeyFixtures(),
  size_gb: [10, 100, 200, 16_000],
  root_disk_size_gb: [20, 80, 1000],
  gpu_count: [0, 0, 0, 1],
  volume_type: ['nvme', 'hdd', 'shared-nvme'],
  provider: Object.keys(VOLUMES),
  account: ['stranger'],
  path: ['/etc/motd', '/root/a/b'],
  owner: ['root:root'],
  permissions: ['0644'],
  packages: ['curl', 'g++'],
});

/** An orchestrator with the simulator, and a marketplace on top of it; both with people of two tenants, and operators. */
export async function startSetting(usesPostgres: boolean): Promise<Setting> {
  const stack = new AsyncDisposableStack();
  const clock = new BriskClock();
  const found: string[] = [];
  const error: Log['error'] = (fields, message) =>
    void found.push(
      `the log: ${message} ${JSON.stringify(fields, (_, it) => (it instanceof Error ? it.stack : it))}`,
    );
  const common = { clock, log: { ...silentLog, error } };

  const server = usesPostgres ? stack.use(await startPostgres()) : undefined;
  const store = server && (await openPostgresStore(await server.createDatabase('orchestrator')));
  const marketStore =
    server && (await openMarketplacePostgresStore(await server.createDatabase('marketplace')));
  stack.defer(async () => void (await Promise.all([store?.close(), marketStore?.close()])));

  const reconcile = { watchIntervalMs: 10_000 };
  // Without a price of stopped machines, the marketplace stops none.
  const changeOffer = (offer: Offer): Offer => ({ ...offer, stoppedPriceMicroUsdPerHour: 1_000 });
  const orchestrator = stack.use(
    await startTestOrchestrator({ ...common, reconcile, changeOffer, ...(store && { store }) }),
  );
  const providers: Record<string, TestProvider> = {};
  for (const [id, volumes] of Object.entries(VOLUMES)) {
    const profile = loadProfile(bundledProfileFile(id) ?? id);
    Object.assign(profile.volumes ?? {}, volumes);
    const key = await orchestrator.addAccount(id);
    providers[id] = { profile, client: clientOf({ ...orchestrator, key }, clock) };
  }
  const { polling, spending } = defaultOptions;
  const options = {
    minimumRuntimeMinutes: 1,
    polling: { ...polling, intervalMs: [5_000, 10_000] as const },
    spending: { ...spending, teamLimits: { deployments: null, volumes: null, volumeGb: null } },
  };
  const market = stack.use(
    await startTestMarketplace({
      ...common,
      providers,
      options,
      hasOperators: true,
      ...(marketStore && { store: marketStore }),
    }),
  );

  const { user } = market;
  const stranger = await market.addUser('stranger@example.com');
  const operator = await createOperatorKey(
    { store: market.store, clock, random: steadyRandom() },
    { name: 'root' },
  );
  const operatorKey = await orchestrator.addOperator('root');
  const refused = (key: string): Target['otherKeys'] =>
    [null, '', 'nonsense', 'x'.repeat(600), key].map((it) => ['none', it]);
  const sold = { key: orchestrator.key, known: { ...known(), api_key: [orchestrator.key] } };
  const people = { teamId: [user.teamId], userId: [user.userId], team: [stranger.teamId] };
  const bought = {
    key: user.key,
    known: { ...known(), ...people, instanceType: ['DEDICATED', 'dedicated'] },
  };
  const operators = (
    document: string,
    { fetch }: Pick<Target, 'fetch'>,
    of: Pick<Target, 'key' | 'known'>,
    key: string,
  ): Target => ({
    ...{ document, prefix: '/operator/v1', fetch, key, known: of.known, otherKeys: refused(of.key) },
  });
  return {
    targets: [
      {
        ...{ ...sold, document: 'orchestrator.v1', prefix: '/v1', fetch: orchestrator.fetch },
        otherKeys: [...refused(operatorKey), ['other', await orchestrator.addAccount('stranger')]],
      },
      operators('operator.v1', orchestrator.admin, sold, operatorKey),
      {
        ...{ ...bought, document: 'marketplace', prefix: '', fetch: market.fetch },
        otherKeys: [...refused(operator.key), ['other', stranger.key]],
      },
      operators('marketplace-operator.v1', market.admin, bought, operator.key),
    ],
    async faults() {
      for (const { fetch } of [orchestrator.admin, market.admin]) {
        const ready = await fetch('/readyz');
        if (ready.status !== 200) found.push(`/readyz is ${ready.status}: ${await ready.text()}`);
      }
      return found;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
