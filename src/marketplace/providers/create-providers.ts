import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Clock, Timer } from '../../ports/clock.ts';
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
 * Logs providers that are no longer configured but still have deployments or volumes. These keep their last known state
 * and are not billed. If a user ends one, it is cleaned up once the provider is configured again.
 */
export async function logMissingProviders({
  store: { read },
  providers,
  log,
}: {
  store: Store;
  providers: Providers;
  log: Log;
}): Promise<void> {
  const left = new Map<string, { deployments: number; volumes: number }>();
  const entry = (id: string) => left.get(id) ?? { deployments: 0, volumes: 0 };
  for (const { providerId, count } of await read.deployments.countToSync())
    left.set(providerId, { ...entry(providerId), deployments: count });
  for (const { providerId, count } of await read.volumes.countByProvider())
    left.set(providerId, { ...entry(providerId), volumes: count });
  for (const [provider, counts] of left)
    if (providers.get(provider) === undefined)
      log.error(
        { provider, ...counts },
        'a provider with remaining deployments or volumes is not configured; they may cost money: add the provider again, or delete them there',
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
