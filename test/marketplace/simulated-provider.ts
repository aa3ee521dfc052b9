import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadCatalog } from '../../src/config/load.ts';
import { packageRoot } from '../../src/config/package-root.ts';
import type { Instance } from '../../src/contract/instance.ts';
import { everyProbeWorks, PlainPlatform } from '../support/doubles/plain-platform.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import type { VirtualClock } from '../support/time/virtual-clock.ts';

/**
 * What a provider's address answers with. `up`: its orchestrator · `down`: the connection breaks · `failing`: 500 ·
 * `garbage`: 200 and a page for people.
 */
export type ProviderMood = 'up' | 'down' | 'failing' | 'garbage';

export interface ProviderRequest {
  method: string;
  path: string;
  at: number;
}

/** One of the seven: a real orchestrator with the catalog of that provider, behind a real HTTP server. */
export interface SimulatedProvider {
  id: string;
  baseUrl: string;
  apiKey: string;
  orchestrator: TestOrchestrator;
  platform: PlainPlatform;
  mood: ProviderMood;
  /** Requests that change something, since the start. */
  writes: ProviderRequest[];
  /** When the provider's address last reported each instance. */
  reportedAt: Map<string, number>;
  /** The provider's own list, whatever its address answers. */
  instances(): Promise<Instance[]>;
  /** From now on this instance costs so much: what a provider does with a spot price. */
  reprice(instanceId: string, microUsdPerHour: number): Promise<void>;
  /** The machine is gone from the platform, as a reclaimed one is. */
  take(instanceId: string): Promise<void>;
  /** The guest has switched itself off. */
  powerOff(instanceId: string): Promise<void>;
  close(): Promise<void>;
}

export interface ProviderStart {
  letter: string;
  clock: VirtualClock;
  watchIntervalMs: number;
}

export async function startProvider({
  letter,
  clock,
  watchIntervalMs,
}: ProviderStart): Promise<SimulatedProvider> {
  const id = `provider-${letter}`;
  const platform = new PlainPlatform(clock);
  const orchestrator = await startTestOrchestrator({
    clock,
    probe: everyProbeWorks,
    wrapDriver: () => platform.driver,
    catalog: loadCatalog(join(packageRoot(), 'fixtures', 'catalogs', `${id}.yaml`)),
    // A provider with one machine may lose it.
    reconcile: { watch_interval_s: watchIntervalMs / 1000, suspect_share: 1 },
  });
  const provider: SimulatedProvider = {
    id,
    orchestrator,
    platform,
    apiKey: orchestrator.key,
    mood: 'up',
    writes: [],
    reportedAt: new Map(),
    baseUrl: '',
    instances: async () => (await list<{ instances: Instance[] }>('/instances')).instances,
    reprice: (instanceId, microUsdPerHour) =>
      orchestrator.store.transact(async (tx) => {
        const record = await tx.instances.byId(instanceId);
        if (record === null) throw new Error(`${id} has no instance ${instanceId}`);
        const priceMicroUsdPerHour = microUsdPerHour;
        await tx.instances.update({ ...record, priceMicroUsdPerHour, updatedAt: clock.now() });
      }),
    take: async (instanceId) => {
      platform.lose(await refOf(instanceId));
    },
    powerOff: async (instanceId) => {
      await platform.driver.stop(await refOf(instanceId), null);
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await orchestrator[Symbol.asyncDispose]();
    },
  };
  const server = createServer(answer(provider, clock));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return provider;

  async function list<Body>(path: string): Promise<Body> {
    const { status, body, text } = await orchestrator.request('GET', path);
    if (status !== 200) throw new Error(`${id}: GET ${path}: ${text}`);
    return body as Body;
  }

  async function refOf(instanceId: string): Promise<string> {
    const record = await orchestrator.store.read.instances.byId(instanceId);
    if (record === null) throw new Error(`${id} has no instance ${instanceId}`);
    return record.ownerRef;
  }
}

function answer(provider: SimulatedProvider, clock: VirtualClock): RequestListener {
  return (request, response) => {
    const { method = '', url = '' } = request;
    if (provider.mood === 'down') return void request.socket.destroy();
    if (provider.mood === 'failing') return void response.writeHead(500).end();
    if (provider.mood === 'garbage')
      return void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Maintenance</h1>');
    if (method !== 'GET') provider.writes.push({ method, path: url, at: clock.now() });
    const [, instanceId] = /^\/v1\/instances\/([^/?]+)(?:\?|$)/.exec(url) ?? [];
    response.once('finish', () => {
      const isReported = method === 'GET' && instanceId !== undefined && response.statusCode === 200;
      if (isReported) provider.reportedAt.set(instanceId, clock.now());
    });
    return provider.orchestrator.listener(request, response);
  };
}
