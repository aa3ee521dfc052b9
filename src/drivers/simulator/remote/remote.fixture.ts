import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { SimulatorOptions } from '../options.ts';
import { createSimulator, type SimulatorTruth } from '../platform/simulator.ts';
import { connectSimulator } from './driver.ts';
import { createRemoteServer, type FaultSettings } from './server.ts';

const TOKEN = 'a-token-for-the-tests';

const size = { vcpus: 8, memoryGb: 64, rootDiskGb: 100, gpuCount: 8, gpuType: 'H100' };
export const CAPACITY = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false, size }];

export interface RemotePair extends AsyncDisposable {
  address: string;
  driver: PlatformDriver;
  clock: VirtualClock;
  connect(token?: string): PlatformDriver;
  truth(): Promise<SimulatorTruth>;
  faultCounts(): Promise<unknown>;
  setFaults(settings: Partial<FaultSettings>): Promise<void>;
}

/** A simulator with two units behind a port, and a driver connected to it, both on one virtual clock. */
export async function startRemotePair(
  platform: SimulatorOptions['platform'] = {},
  { token }: { token: string | undefined } = { token: TOKEN },
): Promise<RemotePair> {
  const clock = new VirtualClock();
  const simulator = await createSimulator({ stateFile: ':memory:', capacity: CAPACITY, platform }, clock);
  const server = createServer(getRequestListener(createRemoteServer({ simulator, token, clock }).fetch));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const attachVolume = platform.attachVolume ?? 'hot';
  const drivers: PlatformDriver[] = [];
  const connect = (given = token): PlatformDriver => {
    const driver = connectSimulator({ address, attachVolume, token: given }, clock);
    drivers.push(driver);
    return driver;
  };
  const control = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${address}/control/${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  return {
    address,
    driver: connect(),
    clock,
    connect,
    truth: async () => (await control('GET', 'truth')) as SimulatorTruth,
    faultCounts: () => control('GET', 'faults'),
    setFaults: async (settings) =>
      void (await control('PUT', 'faults', { seed: 'a', rates: {}, ...settings })),
    async [Symbol.asyncDispose]() {
      for (const driver of drivers) await driver.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await simulator.close();
    },
  };
}
