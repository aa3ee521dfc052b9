import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import type { Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

/** The first call of the method meets the fault. */
export const first =
  (method: DriverCall['method'], fault: Fault): Plan =>
  (call, nth) =>
    call.method === method && nth === 1 ? fault : 'none';

export type PlainOrchestrator = Awaited<ReturnType<typeof startPlainOrchestrator>>;

export async function online({ create, passUntil }: PlainOrchestrator): Promise<string> {
  const id = await create();
  await passUntil(`/instances/${id}`, 'ONLINE');
  return id;
}
