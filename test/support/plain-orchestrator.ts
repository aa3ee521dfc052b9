import type { DriverManifest } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import { everyProbeWorks, PlainPlatform, type Room } from './doubles/plain-platform.ts';
import { type FaultyDriver, withFaults } from './faulty-driver.ts';
import { startTestOrchestrator, type TestOptions } from './orchestrator.ts';
import { instanceRequest, volumeRequest } from './rows/requests.ts';
import { VirtualClock } from './time/virtual-clock.ts';

/** What goes wrong with the n-th call (from 1) of a method. */
export type Plan = (call: DriverCall, nth: number) => Fault;

/** By then the platform has been listed. */
export const LISTED_MS = 6_000;
const TICK_MS = 100;
const LONGEST_TICK_MS = 1_000;

interface PlainOptions extends TestOptions {
  manifest?: Partial<DriverManifest>;
  room?: Room;
  clock?: VirtualClock;
}

/** An orchestrator on a {@link PlainPlatform} with faults before it; time passes only where a test lets it. */
export async function startPlainOrchestrator(
  plan: Plan = () => 'none',
  { manifest = {}, room, ...options }: PlainOptions = {},
) {
  const clock = options.clock ?? new VirtualClock();
  const platform = new PlainPlatform(clock, manifest, room);
  let current = plan;
  const counts = new Map<DriverCall['method'], number>();
  let counted = 0;
  const count = (method: DriverCall['method']): number => {
    for (; counted < faulty.calls.length; counted++) {
      const called = faulty.calls[counted]?.method as DriverCall['method'];
      counts.set(called, (counts.get(called) ?? 0) + 1);
    }
    return counts.get(method) ?? 0;
  };
  const faulty: FaultyDriver = withFaults(
    platform.driver,
    (call) => current(call, count(call.method)),
    clock,
  );
  const { wrapDriver = (driver) => driver } = options;
  const starting = startTestOrchestrator({
    clock,
    probe: everyProbeWorks,
    ...options,
    wrapDriver: () => wrapDriver(faulty),
  });
  const orchestrator = await clock.advanceUntilSettled(starting, TICK_MS);

  async function make(path: string, body: Record<string, unknown>): Promise<string> {
    const reply = await orchestrator.request('POST', path, { body });
    if (reply.status !== 201) throw new Error(reply.text);
    return String(reply.body['id']);
  }

  async function read(path: string): Promise<Record<string, unknown>> {
    const reply = await orchestrator.request('GET', path);
    return reply.status === 404 ? { status: 'GONE' } : reply.body;
  }

  /** Lets time pass until the resource reads so; how long that took, in milliseconds. @throws if it takes longer */
  async function passUntil(path: string, status: string, withinMs = 60_000): Promise<number> {
    const begunAt = clock.now();
    for (;;) {
      const body = await read(path);
      if (body['status'] === status) return clock.now() - begunAt;
      if (clock.now() - begunAt >= withinMs)
        throw new Error(`${path} reads ${JSON.stringify(body)}, not ${status}`);
      // What takes longer is read less often.
      const half = Math.ceil((clock.now() - begunAt) / 2);
      await clock.advance(Math.min(Math.max(TICK_MS, half), LONGEST_TICK_MS));
    }
  }

  return {
    orchestrator,
    clock,
    platform,
    count,
    read,
    passUntil,
    setPlan: (next: Plan) => {
      current = next;
    },
    release: () => faulty.release(),
    create: (overrides: Record<string, unknown> = {}) => make('/instances', instanceRequest(overrides)),
    createVolume: (overrides: Record<string, unknown> = {}) => make('/volumes', volumeRequest(overrides)),
    post: (path: string, body?: unknown) => orchestrator.request('POST', path, { body }),
    async [Symbol.asyncDispose](): Promise<void> {
      current = () => 'none';
      faulty.release();
      await clock.advanceUntilSettled(orchestrator[Symbol.asyncDispose](), TICK_MS);
    },
  };
}
