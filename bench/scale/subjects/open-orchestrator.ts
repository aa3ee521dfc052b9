import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveOrchestrator } from '../../../src/compose/serve/orchestrator.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { packageRoot } from '../../../src/config/package-root.ts';
import { isPostgres, sqlitePath } from '../../../src/config/server-schema.ts';
import { storeInstances, storeTombstones } from '../../orchestrator/stored-instances.ts';
import { measureServe } from '../../start/measure.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

const checkout = { name: 'checkout', command: [process.execPath, join(packageRoot(), 'src/main.ts')] };

/**
 * `berth serve` on a database with n tombstones, from the call to the first reply: in this process, with all modules
 * loaded; and on SQLite as a process, after a clean stop and after a kill.
 */
export const open: OpenSubject = async ({ n, createDatabase, folder }) => {
  const database = await createDatabase();
  const { ids, apiKey } = await storeInstances(database, 1);
  await storeTombstones(database, ids[0] ?? '', n);
  const file = join(folder, 'berth.yaml');
  writeFileSync(file, 'server: { admin: { port: 0 } }\nlog_level: silent\n');
  const { config } = loadConfig({ file, flags: { port: '0', database }, env: {} });
  const meter = await cpuMeter(database);
  const serveOnce = async (): Promise<number> => {
    let stop = async (): Promise<void> => undefined;
    const cpuUs = await cpuOf(meter, async () => {
      const serving = await serveOrchestrator({ config, env: {} });
      stop = serving.stop;
      const { status } = await fetch(new URL('/healthz', serving.baseUrl));
      if (status !== 200) throw new Error(`it answers ${status}`);
    });
    await stop();
    return cpuUs / 1000;
  };
  await serveOnce();
  const startBoth = async () => {
    const path = sqlitePath(database);
    const clean = await measureServe(checkout, path, { apiKey, isKilled: true });
    const unclean = await measureServe(checkout, path, { apiKey });
    return { startMs: clean.startMs, killedMs: unclean.startMs };
  };
  return {
    round: async () => ({ cpuMs: await serveOnce(), ...(!isPostgres(database) && (await startBoth())) }),
    close: async () => undefined,
  };
};
