import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveMarketplace } from '../../../src/compose/serve/marketplace.ts';
import { marketplaceStores } from '../../../src/compose/stores/marketplace.ts';
import { withExisting } from '../../../src/compose/stores/stores.ts';
import { loadMarketplaceConfig } from '../../../src/config/marketplace/load.ts';
import { SLICES_A_DAY, storeBooks } from '../../marketplace/stored-books.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

/** Repeated, because the CPU time of another process has a resolution of hundredths of a second. */
const COMMANDS = 10;

/**
 * `berth marketplace` with books of n slices: the time from the call until it serves, and the cost of opening them for
 * a command.
 */
export const open: OpenSubject = async ({ n, createDatabase, folder }) => {
  const database = await createDatabase();
  await storeBooks(database, Math.ceil(n / SLICES_A_DAY));
  const file = join(folder, 'marketplace.yaml');
  // This address does not answer, so only Berth is measured.
  writeFileSync(
    file,
    `server: { port: 0, admin: { port: 0 } }
providers:
  - { id: provider-b, base_url: 'http://127.0.0.1:9/v1', api_key_env: BENCH_KEY, allow_private: true }
log_level: silent
`,
  );
  const config = loadMarketplaceConfig({ file, flags: { database }, env: {} });
  const meter = await cpuMeter(database);
  const serveOnce = async () => {
    const startedAt = performance.now();
    let stop = async (): Promise<void> => undefined;
    const cpuUs = await cpuOf(meter, async () => {
      ({ stop } = await serveMarketplace({ config, env: { BENCH_KEY: 'bench' } }));
    });
    const ms = performance.now() - startedAt;
    await stop();
    const commandsUs = await cpuOf(meter, async () => {
      for (let time = 0; time < COMMANDS; time++)
        await withExisting(marketplaceStores, database, async () => undefined);
    });
    return { cpuMs: cpuUs / 1000, ms, commandMs: commandsUs / 1000 / COMMANDS };
  };
  await serveOnce();
  return { round: serveOnce, close: async () => undefined };
};
