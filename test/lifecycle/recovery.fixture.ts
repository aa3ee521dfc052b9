import type { ObservedMachine, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

/** It is there for its platform; once what a test prepares is done it does nothing by itself. */
export const startFirst = (options: TestOptions = {}) =>
  startTestOrchestrator({ ...options, reconcile: { watchIntervalMs: 3_600_000 } });

export async function make(
  first: TestOrchestrator,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const { body } = await first.request('POST', '/instances', { body: instanceRequest(overrides) });
  const id = String(body['id']);
  await first.waitFor(id, 'ONLINE');
  return id;
}

export async function makeVolume(first: TestOrchestrator): Promise<string> {
  const { body } = await first.request('POST', '/volumes', { body: volumeRequest() });
  const path = `/volumes/${body['id']}`;
  await until('the volume is there', async () => (await volumeOf(first, path))['status'] === 'AVAILABLE');
  return String(body['id']);
}
export const volumeOf = async (first: TestOrchestrator, path: string) =>
  (await first.request('GET', path)).body;

export async function stop(first: TestOrchestrator, id: string): Promise<void> {
  await first.request('POST', `/instances/${id}/stop`);
  await first.waitFor(id, 'STOPPED');
}

/** Shows each machine as `change` does, in listings and in reads of one. */
export function withMachines(
  driver: PlatformDriver,
  change: (machine: ObservedMachine) => ObservedMachine,
): PlatformDriver {
  return {
    ...withListing(driver, (items) => items.map(change)),
    get: async (ref) => {
      const found = await driver.get(ref);
      return found.answer === 'observed' ? { ...found, value: change(found.value) } : found;
    },
  };
}

/** Each look at the driver's listings goes through `change`. */
export function withListing(
  driver: PlatformDriver,
  change: (machines: ObservedMachine[]) => ObservedMachine[] | undefined,
): PlatformDriver {
  return {
    ...driver,
    list: async () => {
      const listing = await driver.list();
      const items = listing.answer === 'listed' ? change(listing.items) : undefined;
      return items === undefined ? { answer: 'unknown', reason: 'test' } : { answer: 'listed', items };
    },
  };
}

export const unreachable: SshProbe = {
  probe: async () => ({ ok: false, step: 'connect', detail: 'connection refused' }),
};
/** Waits until every machine and volume of a restored database has been accounted for. */
export const untilReconciled = (store: Store): Promise<void> =>
  until('the mark is gone', async () => (await store.read.marks.get('restored_from')) === null);

export const UNKNOWN = `inst-${'0'.repeat(32)}`;
