import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveOrchestrator } from '../../../src/compose/serve-orchestrator.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { storeInstances, storeTombstones } from '../../stored-instances.ts';
import { cpuMeter, cpuOf } from '../cpu.ts';
import type { OpenSubject } from '../measure.ts';

/** `berth serve` on a database with n tombstones, from the call to the first reply; all modules are loaded. */
export const open: OpenSubject = async ({ n, createDatabase, folder }) => {
  const database = await createDatabase();
  const { ids } = await storeInstances(database, 1);
  await storeTombstones(database, ids[0] ?? '', n);
  const file = join(folder, 'berth.yaml');
  writeFileSync(file, 'server: { admin: { enabled: false } }\nlog: { level: silent }\n');
  const { config } = loadConfig({ file, flags: { port: '0', database }, env: {} });
  const meter = await cpuMeter(database);
  const serveOnce = async () => {
    const startedAt = performance.now();
    let ms = 0;
    let stop = async (): Promise<void> => undefined;
    const cpuUs = await cpuOf(meter, async () => {
      const serving = await serveOrchestrator({ config, env: {} });
      stop = serving.stop;
      const { status } = await fetch(new URL('/healthz', serving.baseUrl));
      if (status !== 200) throw new Error(`it answers ${status}`);
      ms = performance.now() - startedAt;
    });
    await stop();
    return { cpuMs: cpuUs / 1000, ms };
  };
  await serveOnce();
  return { round: serveOnce, close: async () => undefined };
};
