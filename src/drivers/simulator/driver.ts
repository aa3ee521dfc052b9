import type { Clock } from '../../orchestrator/ports/clock.ts';
import type { PlatformDriver } from '../../orchestrator/ports/platform-driver.ts';
import { SimulatedMachines } from './machines.ts';
import { Draws, type SimulatorOptions, simulatorConfigSchema } from './options.ts';
import { Runtime } from './runtime.ts';
import { SimulatorState } from './state.ts';
import { SimulatedVolumes } from './volumes.ts';

/**
 * A little datacenter in this process: machines with real SSH servers on loopback, volumes, physical
 * capacity, and a memory of its own that survives the orchestrator's death. The default platform of
 * `berth serve`. Machines that ran when the process died answer again when the promise resolves.
 *
 * @throws {ZodError} if `options.platform` is not a valid configuration.
 */
export async function createSimulator(options: SimulatorOptions, clock: Clock): Promise<PlatformDriver> {
  const config = simulatorConfigSchema.parse(options.platform ?? {});
  const { capacity, host = '127.0.0.1' } = options;
  const state = new SimulatorState(options.stateFile);
  const draws = new Draws(config.seed);
  const datacenters = new Set(capacity.map((entry) => entry.datacenter));
  const volumes = new SimulatedVolumes({
    state,
    clock,
    draws,
    config,
    datacenters,
    machine: (ref) => {
      const record = state.machines.get(ref);
      return record && runtime.current(record, clock.now());
    },
  });
  const runtime = new Runtime({ state, clock, draws, config, host, volumes });
  const machines = new SimulatedMachines({ state, clock, draws, config, capacity, host, runtime });
  await runtime.restore();

  return {
    // A create is on the disk before anything else can be asked: a look after the call is conclusive.
    manifest: {
      name: 'simulator',
      stop: true,
      resume: true,
      attachVolume: config.attach_volume,
      createVisibleWithinMs: 0,
      keepsNotes: true,
    },
    get: (ref) => machines.get(ref),
    list: () => machines.list(),
    create: (spec) => machines.create(spec),
    stop: (ref) => machines.stop(ref),
    start: (ref) => machines.start(ref),
    destroy: (ref) => machines.destroy(ref),
    volumes,
    async close() {
      await runtime.close();
      state.close();
    },
  };
}
