import type { DriverManifest, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../ports/clock.ts';
import {
  Draws,
  type SimulatedCapacity,
  type SimulatorConfig,
  type SimulatorOptions,
  simulatorConfigSchema,
} from '../options.ts';
import { SimulatedMachines } from './machines.ts';
import type { AttachmentRecord, MachineRecord, VolumeRecord } from './records.ts';
import { Runtime } from './runtime.ts';
import { SimulatorState } from './state.ts';
import type { UnitEvent } from './unit-history.ts';
import { SimulatedVolumes } from './volumes.ts';

/** What there is on the platform, all of it, and what became of its units. */
export interface SimulatorTruth {
  capacity: readonly SimulatedCapacity[];
  machines: (Pick<MachineRecord, 'power' | 'holdsUnit' | 'createdAt'> & {
    ref: string;
    offerId: string;
    datacenter: string;
  })[];
  volumes: (Pick<VolumeRecord, 'state' | 'createdAt'> & { ref: string })[];
  attachments: Pick<AttachmentRecord, 'volume' | 'machine' | 'state'>[];
  units: UnitEvent[];
}

export interface Simulator extends PlatformDriver {
  /** Beside the driver's port: for who holds an orchestrator's books against the truth. */
  inspect(): Promise<SimulatorTruth>;
}

/**
 * A little datacenter in this process: machines with real SSH servers on loopback, volumes, physical
 * capacity, and a memory of its own that survives the orchestrator's death. The default platform of
 * `berth serve`. Machines that ran when the process died answer again when the promise resolves.
 *
 * @throws {ZodError} if `options.platform` is not a valid configuration.
 * @throws {StateInUse} if another process runs the machines of `options.stateFile`.
 */
export async function createSimulator(options: SimulatorOptions, clock: Clock): Promise<Simulator> {
  const config = simulatorConfigSchema.parse(options.platform ?? {});
  const { capacity, host = '127.0.0.1' } = options;
  const state = new SimulatorState(options.stateFile, clock);
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
    manifest: manifestOf(config, 0),
    get: (ref) => machines.get(ref),
    list: () => machines.list(),
    create: (spec) => machines.create(spec),
    stop: (ref) => machines.stop(ref),
    start: (ref) => machines.start(ref),
    restart: (ref, id) => machines.restart(ref, id),
    destroy: (ref) => machines.destroy(ref),
    volumes,
    inspect: async () => {
      await Promise.all([machines.list(), volumes.list()]);
      return truthOf(state, capacity);
    },
    async close() {
      await runtime.close();
      state.close();
    },
  };
}

/** `createVisibleWithinMs`: see the port. */
export function manifestOf(
  { attach_volume }: Pick<SimulatorConfig, 'attach_volume'>,
  createVisibleWithinMs: number,
): DriverManifest {
  return {
    name: 'simulator',
    stop: true,
    resume: true,
    restart: true,
    attachVolume: attach_volume,
    resizeVolume: attach_volume === 'hot' ? 'attached' : 'detached',
    createVisibleWithinMs,
    keepsNotes: true,
  };
}

function truthOf(state: SimulatorState, capacity: readonly SimulatedCapacity[]): SimulatorTruth {
  return {
    capacity,
    machines: state.machines.all().map(({ spec: { ref, offerId, datacenter }, ...record }) => {
      const { power, holdsUnit, createdAt } = record;
      return { ref, offerId, datacenter, power, holdsUnit, createdAt };
    }),
    volumes: state.volumes.all().map(({ spec: { ref }, state, createdAt }) => ({ ref, state, createdAt })),
    attachments: state.attachments.all().map(({ volume, machine, state }) => ({ volume, machine, state })),
    units: state.units.all(),
  };
}
