import type { CallOptions } from '../../client/orchestrator-client.ts';
import { counted } from '../../contract/counted.ts';
import type { Clock, Timer } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';
import type { GpuTypes } from './gpu-types.ts';
import { noMarkups } from './markup.ts';
import type { Provider, Providers } from './provider.ts';
import { readCatalog } from './read-catalog.ts';
import { StoredCatalog } from './stored-catalog.ts';

export type ConfiguredProvider = Pick<Provider, 'profile' | 'client' | 'sshProbe'> &
  Partial<Pick<Provider, 'markups'>>;

export interface ProvidersOptions {
  /** In the order of the configuration. */
  providers: readonly ConfiguredProvider[];
  gpuTypes: GpuTypes;
  store: Store;
  clock: Clock;
  log: Log;
}

/** The providers of a marketplace, with their catalogs. */
export interface LiveProviders extends Providers {
  /** Problems of the last catalog reading, by any process, and of its offers. */
  problemsOf(id: string): readonly string[];
  reread(): Promise<void>;
  /** Starts rereading every few seconds. */
  start(): void;
  /**
   * Reads the catalog, writes it through `within` and shows it. If the provider hangs, the call ends with its timeout.
   */
  refresh(id: string, within: Store, call?: CallOptions): Promise<void>;
  /** Stops rereading and closes the connections. */
  close(): Promise<void>;
}

/** @throws {Error} if two providers have the same id */
export function createProviders({ providers, ...deps }: ProvidersOptions): LiveProviders {
  const catalogs = new Map<string, StoredCatalog>();
  const byId = new Map<string, Provider>();
  for (const { profile, client, sshProbe, markups = noMarkups } of providers) {
    if (byId.has(profile.id)) throw new Error(`Two providers have the id ${profile.id}.`);
    const catalog = new StoredCatalog({ ...deps, profile, markups });
    catalogs.set(profile.id, catalog);
    byId.set(profile.id, { id: profile.id, profile, client, markups, catalog, sshProbe });
  }
  const ids = [...byId.keys()];
  const rereading = createRereading({ ...deps, catalogs });
  const readings = new Set<Promise<void>>();
  return {
    ids: () => ids,
    get: (id) => byId.get(id),
    problemsOf: (id) => catalogs.get(id)?.problems ?? [],
    reread: rereading.once,
    start: rereading.start,
    refresh: async (id, within, call) => {
      const provider = byId.get(id);
      if (provider === undefined) return;
      const reading = refresh(provider, within, { ...call, now: deps.clock.now() });
      readings.add(reading);
      await reading.finally(() => readings.delete(reading));
      await rereading.once();
    },
    close: async () => {
      await rereading.stop();
      // Closing the connection ends a call that hangs.
      await Promise.all([...byId.values()].map(({ client }) => client.close()));
      await Promise.allSettled(readings);
    },
  };
}

async function refresh(
  provider: Provider,
  within: Store,
  options: Parameters<typeof readCatalog>[2],
): Promise<void> {
  const before = await within.read.catalogs.byProvider(provider.id);
  const found = await readCatalog(provider, before, options);
  const { version, readAt } = found;
  if (version !== before?.version) await within.transact((tx) => tx.catalogs.put(found));
  else if (readAt !== null && readAt !== before.readAt)
    await within.transact((tx) => tx.catalogs.confirm(provider.id, readAt));
}

/**
 * Refuses to start while deployments or volumes are left at a provider that is neither configured nor retired, and logs
 * machines there that are still to be deleted.
 * @throws {Fatal}
 */
export async function assertNoneMissing({
  store: { read },
  providers,
  retired,
  log,
}: {
  store: Pick<Store, 'read'>;
  providers: Providers;
  retired: readonly string[];
  log: Log;
}): Promise<void> {
  const isMissing = ({ providerId }: { providerId: string }) =>
    providers.get(providerId) === undefined && !retired.includes(providerId);
  const left = new Map<string, { deployments: number; volumes: number }>();
  const add = (id: string, more: { deployments?: number; volumes?: number }) => {
    const { deployments, volumes } = left.get(id) ?? { deployments: 0, volumes: 0 };
    left.set(id, {
      deployments: deployments + (more.deployments ?? 0),
      volumes: volumes + (more.volumes ?? 0),
    });
  };
  for (const { providerId, count: deployments } of (await read.deployments.countActiveByProvider()).filter(
    isMissing,
  ))
    add(providerId, { deployments });
  for (const { providerId, count: volumes } of (await read.volumes.countByProvider()).filter(isMissing))
    add(providerId, { volumes });
  const [first] = left;
  if (first !== undefined) throw new Fatal(missingText(...first));
  for (const { providerId: provider, count: deployments } of (await read.deployments.countToSync()).filter(
    isMissing,
  ))
    log.error(
      { provider, deployments },
      'a provider that is not configured may still have machines of ended deployments; they may cost money: add the provider again, or delete them there',
    );
}

function missingText(id: string, { deployments, volumes }: { deployments: number; volumes: number }): string {
  return (
    `The provider ${id} is not in the configuration, and ${counted(deployments, 'deployment')} and ` +
    `${counted(volumes, 'volume')} there have not ended. Add it again under \`providers\`, or, to give it up, add ` +
    `\`- { id: ${id}, retired: true }\`: it is then not called, its deployments end as terminated-provider, its volumes ` +
    'are deleted here, and nothing more is billed.'
  );
}

/** How often changes by other processes are read. */
const REREAD_MS = 3_000;

interface RereadingDeps {
  store: Pick<Store, 'read'>;
  clock: Clock;
  log: Log;
  catalogs: ReadonlyMap<string, StoredCatalog>;
}

/** Loads catalogs from the database into memory: first all versions, then those that have changed. */
function createRereading({ store: { read }, clock, log, catalogs }: RereadingDeps) {
  // Rounds run one at a time, so that an older row never replaces a newer one.
  let last: Promise<void> = Promise.resolve();
  let timer: Timer | undefined;
  let isFailing = false;
  let isStopped = false;
  const load = async (): Promise<void> => {
    for (const { providerId, version, readAt } of await read.catalogs.versions()) {
      const catalog = catalogs.get(providerId);
      if (catalog?.version === version) catalog.refreshedAt = readAt;
      else if (catalog !== undefined) {
        const record = await read.catalogs.byProvider(providerId);
        if (record !== null) catalog.show(record);
      }
    }
  };
  const once = (): Promise<void> => {
    const round = last.then(load);
    last = round.catch(() => undefined);
    return round;
  };
  const again = async (): Promise<void> => {
    try {
      await once();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.error({ err: error }, 'the catalogs cannot be read from the database');
      isFailing = true;
    }
    start();
  };
  const start = (): void => {
    if (!isStopped) timer = clock.setTimer(REREAD_MS, () => void again());
  };
  const stop = async (): Promise<void> => {
    isStopped = true;
    timer?.cancel();
    await last;
  };
  return { once, start, stop };
}
