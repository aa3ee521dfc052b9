import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { BenchClient, CREATE_BODY } from '../support/client.ts';
import { countFsyncs } from '../support/count-fsyncs.ts';
import { postgresMeter } from '../support/cpu.ts';
import { median } from '../support/paired-rounds.ts';
import { ServerProcess } from '../support/server-process.ts';
import { onlineInstance, storeInstances } from './stored-instances.ts';

/** The cost of one instance from its create until it reads 404, on a platform that takes no time. */
export interface LifetimeCost {
  /** Of Berth and of its PostgreSQL. */
  cpuMs: number;
  /** Of Berth only. */
  berthCpuMs: number;
  /** Null: they cannot be counted here, or the database is another process. */
  fsyncs: number | null;
  perSecond: number;
}

const UNLIMITED = `rate_limits: false
log_level: warn
`;

const POLL_MS = 10;

/** Measures lifetimes of instances in a database with `stored` others, `atOnce` at a time. */
export async function measureLifetimes(
  database: string,
  { stored = 0, lifetimes = 600, atOnce = 32, rounds = 5 } = {},
): Promise<LifetimeCost> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-lifetimes-'));
  const configFile = join(folder, 'berth.yaml');
  writeFileSync(configFile, UNLIMITED);
  const { apiKey } = await storeInstances(database, stored, onlineInstance);
  const server = await ServerProcess.start(new URL('./orchestrator-server.ts', import.meta.url), [
    database,
    configFile,
  ]);
  try {
    const live = (count: number) => liveAll(server.port, apiKey, count, atOnce);
    await live(lifetimes);
    const postgres = await postgresMeter(database);
    const cpuMs: number[] = [];
    const berthCpuMs: number[] = [];
    const perSecond: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = { berth: (await server.usage()).cpuUs, postgres: postgres() };
      const begunAt = performance.now();
      await live(lifetimes);
      perSecond.push((lifetimes * 1000) / (performance.now() - begunAt));
      const berthUs = (await server.usage()).cpuUs - before.berth;
      berthCpuMs.push(berthUs / 1000 / lifetimes);
      cpuMs.push((berthUs + postgres() - before.postgres) / 1000 / lifetimes);
    }
    const fsyncs = database.startsWith('sqlite:')
      ? await countFsyncs(server.pid, () => live(lifetimes))
      : null;
    return {
      cpuMs: median(cpuMs),
      berthCpuMs: median(berthCpuMs),
      perSecond: median(perSecond),
      fsyncs: fsyncs === null ? null : fsyncs / lifetimes,
    };
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function liveAll(port: number, apiKey: string, count: number, atOnce: number): Promise<void> {
  const client = new BenchClient({ port, apiKey, connections: atOnce });
  let begun = 0;
  const live = async (): Promise<void> => {
    while (begun++ < count) {
      const created = await client.send('POST', '/v1/instances', CREATE_BODY);
      if (created.status !== 201) throw new Error(`a create is ${created.status}: ${created.text}`);
      const path = `/v1/instances/${(JSON.parse(created.text) as { id: string }).id}`;
      while (!(await client.read(path)).includes('"ONLINE"')) await pause(POLL_MS);
      await client.send('DELETE', path);
      while ((await client.send('GET', path)).status !== 404) await pause(POLL_MS);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, live));
  client.close();
}
