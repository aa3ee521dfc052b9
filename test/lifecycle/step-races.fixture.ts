import { type FaultyDriver, withFaults } from '../../src/drivers/kit/faults.ts';
import type { PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

export async function create({ request }: TestOrchestrator): Promise<string> {
  const { status, body, text } = await request('POST', '/instances', { body: instanceRequest() });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

export async function online(orchestrator: TestOrchestrator): Promise<string> {
  const id = await create(orchestrator);
  await orchestrator.waitFor(id, 'ONLINE');
  return id;
}

export async function startWithFaults(plan: (call: DriverCall) => Fault, options: TestOptions = {}) {
  let current = plan;
  let faulty: FaultyDriver | undefined;
  const { wrapDriver = (driver) => driver } = options;
  const orchestrator = await startTestOrchestrator({
    ...options,
    wrapDriver: (driver) => {
      faulty = withFaults(wrapDriver(driver), (call) => current(call));
      return faulty;
    },
  });
  return {
    orchestrator,
    count: (method: DriverCall['method']) =>
      faulty?.calls.filter((call) => call.method === method).length ?? 0,
    setPlan: (next: typeof plan) => {
      current = next;
    },
    release: () => {
      current = () => 'none';
      faulty?.release();
    },
  };
}

export const failed = (code: 'gone' | 'conflict' | 'capacity' | 'unknown_outcome'): Step<never> => ({
  outcome: 'failed',
  code,
  sideEffect: 'none',
  detail: 'as the test says',
});
export const post = ({ request }: TestOrchestrator, id: string, action: string) =>
  request('POST', `/instances/${id}/${action}`);
export const statusOf = async ({ request }: TestOrchestrator, id: string): Promise<unknown> =>
  (await request('GET', `/instances/${id}`)).body['status'];
export const listed = async (driver: PlatformDriver): Promise<string[]> => {
  const listing = await driver.list();
  return listing.answer === 'listed' ? listing.items.map(({ ref }) => ref) : ['unknown'];
};
