import { Draws } from '../../drivers/simulator/options.ts';
import { endpointOf, newGuest } from '../../drivers/simulator/platform/rules.ts';
import { Runtime } from '../../drivers/simulator/platform/runtime.ts';
import { type SimulatedMachine, SimulatorState } from '../../drivers/simulator/platform/state.ts';
import { type Carry, createPlatform, type Stored } from '../../platform-model/platform.ts';
import type { MachineRecord } from '../../platform-model/records.ts';
import type { PlatformRules, Storage } from '../../platform-model/rules.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { SandboxClock } from '../../sandbox/clock.ts';
import type { SandboxMachine, SandboxPlatform } from '../../sandbox/machines.ts';
import type { Timing } from '../../sandbox/options.ts';
import { createSshProbe } from '../../ssh/probe.ts';

interface Parts {
  /** Held during operations that take real time. */
  sandboxClock: SandboxClock;
  clock: Clock;
  rules: PlatformRules<SandboxMachine>;
  seed: string;
  timing: Timing;
  changed(): void;
  stored: Stored<SandboxMachine> | undefined;
  /** The disks of the machines, from `image`. */
  disks: Buffer | undefined;
}

/** A platform whose machines have real SSH servers on loopback: the guests of the simulator. */
export function createGuests(parts: Parts) {
  const { sandboxClock, clock, rules: plain, seed, timing, changed, stored } = parts;
  const state = new SimulatorState(':memory:', parts.disks);
  const draws = new Draws(seed);
  const rules: PlatformRules<SimulatedMachine> = {
    ...(plain as PlatformRules<MachineRecord>),
    make: () => newGuest(true),
    endpoint: endpointOf,
  };
  const storage: Storage<SimulatedMachine> = {
    machine: (...change) => noting(() => state.machine(...change)),
    volume: (...change) => noting(() => state.volume(...change)),
    attachment: (...change) => noting(() => state.attachment(...change)),
  };
  const noting = (write: () => void): void => {
    write();
    changed();
  };
  const platform = createPlatform(
    { clock, rules, machineDraws: draws, volumeDraws: draws, storage },
    stored as Stored<MachineRecord> as Stored<SimulatedMachine> | undefined,
  );
  const { boot: bootMs, stop: stopMs, start: startMs } = timing;
  const config = { bootMs, stopMs, startMs };
  const runtime = new Runtime({ state, clock, draws, config, platform });
  const real = createSshProbe();
  const held: SandboxClock['held'] = (work) => sandboxClock.held(work);
  return {
    // The cast is safe: only the model's probes read the additional fields of the sandbox's machines.
    platform: platform as unknown as SandboxPlatform,
    probe: { probe: (...question) => held(() => real.probe(...question)) } satisfies SshProbe,
    /** The driver's `carry`, whose answers include the state of the guests. */
    carry:
      (injected: Carry): Carry =>
      async (method, ref, call) => {
        if (method.startsWith('volumes.')) return injected(method, ref, call);
        const settle = () => held(() => (ref === undefined ? runtime.settleAll() : runtime.settle(ref)));
        const hasPort = () => ref !== undefined && platform.machines.of(ref)[0]?.sshPort != null;
        await settle();
        const had = hasPort();
        const answer = await injected(method, ref, call);
        await settle();
        // Repeats a finished call, so that its answer has the port that the guest has just got.
        return !had && hasPort() && 'outcome' in answer && answer.outcome === 'done' ? call() : answer;
      },
    /** Starts the guests of the stored machines. */
    begin: () => held(() => runtime.settleAll()),
    image: () => state.image(),
    async close() {
      await runtime.close();
      state.close();
    },
  };
}
