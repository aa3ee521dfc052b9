import type { Call, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import { type Answer, createPlatform, driverOf } from '../../../platform-model/platform.ts';
import { failed } from '../../../platform-model/steps.ts';
import type { Clock } from '../../../ports/clock.ts';
import { Draws, defaultBehavior, type SimulatorOptions } from '../options.ts';
import { rulesOf } from './rules.ts';
import { Runtime } from './runtime.ts';
import { SimulatorState } from './state.ts';

/**
 * A small datacenter in this process: machines with real SSH servers on loopback, volumes and physical capacity. Its
 * state is stored separately and survives the orchestrator's process. It is the default platform of `berth serve`.
 * Machines that ran before a crash answer again when the promise resolves.
 *
 * @throws {InUse} if another process runs the machines of `options.stateFile`
 */
export async function createSimulator(options: SimulatorOptions, clock: Clock): Promise<PlatformDriver> {
  const config = { ...defaultBehavior, ...options.platform };
  const state = new SimulatorState(options.stateFile);
  const draws = new Draws(config.seed);
  const rules = rulesOf(config, { capacity: () => options.capacity, draws });
  const ports = { clock, rules, machineDraws: draws, volumeDraws: draws, storage: state };
  const platform = createPlatform(ports, state.load());
  const runtime = new Runtime({ state, clock, draws, config, platform });
  await runtime.settleAll();
  const claims = new Claims(clock);

  return {
    // A create is stored before any other call, so a later read is conclusive.
    ...driverOf(platform, rules.manifest, (method, ref, call, limits) => {
      const isOfVolume = method.startsWith('volumes.');
      const begin = claims.guard(`${isOfVolume ? 'volume' : 'machine'} ${ref}`, call, limits);
      if (isOfVolume) return runtime.whenOpen(begin);
      return ref === undefined ? runtime.settleAll().then(begin) : runtime.call(ref, begin);
    }),
    writer: state.writer,
    async close() {
      await runtime.close();
      state.close();
    },
  };
}

/** Refuses calls that are past their deadline, cancelled, or older than a claim already seen. */
class Claims {
  readonly #clock: Pick<Clock, 'now'>;
  /** The highest fence seen, by resource. */
  readonly #seen = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Wraps `call` so that its claim is checked when it begins. Once begun, it may be called again for its result. */
  guard<T extends Answer>(resource: string, call: () => T, limits: Call | undefined): () => T {
    if (limits === undefined) return call;
    let isBegun = false;
    return () => {
      const problem = isBegun ? undefined : this.#findProblem(resource, limits);
      if (problem !== undefined) return failed('transient', problem) as T;
      isBegun = true;
      return call();
    };
  }

  /** Why the call may not begin. */
  #findProblem(resource: string, { deadline, fence, signal }: Call): string | undefined {
    if (signal.aborted) return 'the call was cancelled before it was started';
    if (this.#clock.now() > deadline) return 'the call arrived after its deadline, and was not started';
    const seen = this.#seen.get(resource) ?? 0;
    if (fence < seen) return `a later claim of this ${resource} was seen: nothing was started`;
    this.#seen.set(resource, fence);
    return undefined;
  }
}
