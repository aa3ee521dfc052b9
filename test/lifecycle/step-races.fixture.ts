import type { PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import { type FaultyDriver, withFaults } from '../support/faulty-driver.ts';
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

/** What goes wrong with the n-th call (from 1) of a method; the rest goes well. */
type Plan = (call: DriverCall, nth: number) => Fault;

export async function startWithFaults(plan: Plan, options: TestOptions = {}) {
  const counts = new Map<DriverCall['method'], number>();
  let current = plan;
  let faulty: FaultyDriver | undefined;
  const { wrapDriver = (driver) => driver } = options;
  const orchestrator = await startTestOrchestrator({
    ...options,
    wrapDriver: (driver) => {
      faulty = withFaults(wrapDriver(driver), (call) => {
        const nth = (counts.get(call.method) ?? 0) + 1;
        counts.set(call.method, nth);
        return current(call, nth);
      });
      return faulty;
    },
  });
  return {
    orchestrator,
    count: (method: DriverCall['method']) => counts.get(method) ?? 0,
    setPlan: (next: Plan) => {
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
