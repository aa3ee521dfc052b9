import { setTimeout as pause } from 'node:timers/promises';
import { toMarketplaceOptions } from '../../src/compose/marketplace/options.ts';
import { createClients, loadGpuTypes } from '../../src/compose/marketplace/providers.ts';
import { openMarketplaceStore } from '../../src/compose/stores/marketplace.ts';
import { loadMarketplaceConfig } from '../../src/config/marketplace/load.ts';
import { createProviders } from '../../src/marketplace/providers/create-providers.ts';
import { ProviderWorkers } from '../../src/marketplace/sync/provider-workers.ts';
import { withOverrides } from '../../src/ports/with-overrides.ts';
import { systemClock as clock, systemRandom as random } from '../../src/runtime/system.ts';
import { cpuMeter } from '../support/cpu.ts';
import { quietLog as log } from '../support/quiet-log.ts';
import { writeMeter } from '../support/writes.ts';
import { NO_SLICE_S, withStoredMarketplace } from './measured-marketplace.ts';
import { ofTeams } from './stored-deployments.ts';

export interface MovedRanges {
  /** CPU, including the database, of each deployment until its new process has polled it once. */
  cpuUs: number;
  /** Time until the new process has read its deployments. It sends no request for them before. */
  readMs: number;
  /** Write transactions in total. */
  writes: number;
}

/** Measures the move of all ranges of a provider from a process that ends to one that starts. */
export function measureMovedRanges(
  deployments: number,
  { createDatabase, firstPollsS }: { createDatabase: () => Promise<string>; firstPollsS: number },
): Promise<MovedRanges> {
  const stored = { ...ofTeams(deployments), createDatabase, sliceS: NO_SLICE_S };
  // No deployment is polled twice before all were polled once.
  const intervalS = [firstPollsS, 2 * firstPollsS] as const;
  return withStoredMarketplace({ ...stored, intervalS }, async ({ file, database }) => {
    const config = loadMarketplaceConfig({ file, flags: {}, env: {} });
    const store = await openMarketplaceStore(database, () => undefined);
    const polled = new Set<string>();
    let readAt = Number.NaN;
    const { deployments: reader } = store.read;
    const toSync: typeof reader.toSync = async (...args) => {
      const found = await reader.toSync(...args);
      readAt = performance.now();
      return found;
    };
    const clients = createClients(config, { env: { BENCH_KEY: 'bench' }, clock, log }).map((one) => ({
      ...one,
      client: withOverrides(one.client, {
        pollInstance: (id, ...rest) => {
          polled.add(id);
          return one.client.pollInstance(id, ...rest);
        },
      }),
    }));
    const providers = createProviders({ providers: clients, gpuTypes: loadGpuTypes(), store, clock, log });
    const begin = async (): Promise<ProviderWorkers> => {
      polled.clear();
      const read = { ...store.read, deployments: { ...reader, toSync } };
      const workers = new ProviderWorkers({
        ...{ store: { ...store, read }, clock, random, log, providers },
        options: toMarketplaceOptions(config),
        installationId: 'bench',
        refreshCatalog: providers.refresh,
      });
      workers.start();
      while (polled.size < deployments) await pause(50);
      return workers;
    };
    const meter = await cpuMeter(database);
    const writes = await writeMeter(database, process.pid);
    try {
      await (await begin()).stop();
      const before = { at: performance.now(), cpuUs: meter(), ...(await writes.read()) };
      const heir = await begin();
      const [cpuUs, written] = [meter() - before.cpuUs, await writes.read()];
      await heir.stop();
      return {
        cpuUs: cpuUs / deployments,
        readMs: readAt - before.at,
        writes: written.transactions - before.transactions,
      };
    } finally {
      await writes.close();
      await providers.close();
      await store.close();
    }
  });
}
