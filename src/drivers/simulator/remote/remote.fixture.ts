import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { type FaultyDriver, withFaults } from '../../../../test/support/faulty-driver.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { FaultPlan } from '../../../platform-model/call-faults.ts';
import type { SimulatorOptions } from '../options.ts';
import { createSimulator } from '../platform/simulator.ts';
import { connectSimulator } from './driver.ts';
import { createRemoteServer } from './server.ts';

const TOKEN = 'a-token-for-the-tests';

const size = { vcpus: 8, memoryGb: 64, rootDiskGb: 100, gpuCount: 8, gpuType: 'H100' };
export const CAPACITY = [{ offerId: 'h100', datacenter: 'fra', units: 2, spot: false, size }];

export interface RemotePair extends AsyncDisposable {
  address: string;
  driver: PlatformDriver;
  clock: VirtualClock;
  connect(token?: string): PlatformDriver;
  /** The simulator behind its faults. */
  faulty: FaultyDriver;
}

/** A simulator with two units behind a port, and a driver connected to it, both on one virtual clock. */
export async function startRemotePair(
  platform: SimulatorOptions['platform'] = {},
  { token, plan = () => 'none' }: { token?: string | undefined; plan?: FaultPlan } = { token: TOKEN },
): Promise<RemotePair> {
  const clock = new VirtualClock();
  const simulator = await createSimulator({ stateFile: ':memory:', capacity: CAPACITY, platform }, clock);
  const faulty = withFaults(simulator, plan, clock);
  const server = createServer(getRequestListener(createRemoteServer({ simulator: faulty, token }).fetch));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const drivers: PlatformDriver[] = [];
  const connect = (given = token): PlatformDriver => {
    const driver = connectSimulator({ address, token: given }, clock);
    drivers.push(driver);
    return driver;
  };
  return {
    address,
    driver: connect(),
    clock,
    connect,
    faulty,
    async [Symbol.asyncDispose]() {
      for (const driver of drivers) await driver.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await simulator.close();
    },
  };
}
