import { expect } from 'vitest';
import type { PlatformDriver, VolumeDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall } from '../../src/platform-model/call-faults.ts';
import type { TestOptions } from '../support/orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { startWithFaults } from './step-races.fixture.ts';

export async function startWithVolumeFaults(options: TestOptions = {}) {
  const { orchestrator, count, setPlan, release } = await startWithFaults(() => 'none', options);
  const { request, store } = orchestrator;
  const make = async (path: string, body: Record<string, unknown>): Promise<string> => {
    const reply = await request('POST', path, { body });
    if (reply.status !== 201) throw new Error(reply.text);
    return String(reply.body['id']);
  };
  const statusOf = async (id: string): Promise<string> => {
    const reply = await request('GET', `/volumes/${id}`);
    return reply.status === 404 ? 'GONE' : String(reply.body['status']);
  };
  const waitForVolume = (id: string, status: string): Promise<void> =>
    until(`${id} reads ${status}`, async () => (await statusOf(id)) === status);
  const instance = (overrides: Record<string, unknown> = {}) =>
    make('/instances', instanceRequest(overrides));
  return {
    orchestrator,
    instance,
    waitForVolume,
    volume: (overrides: Record<string, unknown> = {}) => make('/volumes', volumeRequest(overrides)),
    online: async (overrides: Record<string, unknown> = {}): Promise<string> => {
      const id = await instance(overrides);
      await orchestrator.waitFor(id, 'ONLINE');
      return id;
    },
    available: async (): Promise<string> => {
      const id = await make('/volumes', volumeRequest());
      await waitForVolume(id, 'AVAILABLE');
      return id;
    },
    attach: (id: string, ...instanceIds: string[]) =>
      request('POST', `/volumes/${id}/attach`, { body: { instance_ids: instanceIds } }),
    detach: (id: string) => request('POST', `/volumes/${id}/detach`),
    remove: async (path: string): Promise<void> => {
      expect([200, 204]).toContain((await request('DELETE', path)).status);
    },
    setPlan,
    calls: count,
    heal: release,
    hasCalled: (method: DriverCall['method']) => count(method) > 0,
    /** Nothing is left to do for the resource. */
    settled: (id: string) => until(`${id} is settled`, async () => (await store.read.work.of(id)) === null),
  };
}

/** The driver with some calls of its volumes answered by the test. */
export function withVolumes(
  driver: PlatformDriver,
  change: (volumes: VolumeDriver) => Partial<VolumeDriver>,
): PlatformDriver {
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('the simulator has volumes');
  const kept: VolumeDriver = {
    get: (ref) => volumes.get(ref),
    list: () => volumes.list(),
    create: (spec, cookie) => volumes.create(spec, cookie),
    attach: (ref, machine, cookie) => volumes.attach(ref, machine, cookie),
    detach: (ref, machine, cookie) => volumes.detach(ref, machine, cookie),
    resize: (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie),
    destroy: (ref, cookie) => volumes.destroy(ref, cookie, anOrder),
  };
  return { ...driver, volumes: { ...kept, ...change(volumes) } };
}
