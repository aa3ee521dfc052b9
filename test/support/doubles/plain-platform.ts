import type {
  DriverManifest,
  Endpoint,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
} from '../../../src/orchestrator/model/platform-driver.ts';
import { createPlatform, driverOf, type Platform } from '../../../src/platform-model/platform.ts';
import type { MachineRecord } from '../../../src/platform-model/records.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { SshProbe } from '../../../src/ports/ssh-probe.ts';

/** Every machine can be logged in to. */
export const everyProbeWorks: SshProbe = {
  probe: async () => ({ ok: true, hostKeyFingerprint: 'SHA256:plain' }),
};

interface PlainMachine extends MachineRecord {
  /** Null: it has no address. */
  endpoint: Endpoint | null;
}

/** Where the first machine is reached; each one after it has the next port. */
export const plainEndpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'root' };

const AT_ONCE: [number, number] = [0, 0];
const nothingDrawn = { durationMs: () => 0, happens: () => false };

/** The units that its hosts have, which a test may change; an offer that is not named has any number. */
export type Room = readonly { offerId: string; datacenter: string; units: number }[];

/** A platform in memory that does at once what it is asked: what a test wants slow or wrong it puts before it. */
export class PlainPlatform {
  /** Logs in at any address: a machine that runs has to know the keys. */
  readonly ssh: SshProbe = {
    probe: async (_target, keys) => {
      const running = this.#platform.machines.all().filter(({ power }) => power === 'running');
      if (running.some(({ spec }) => keys.every((key) => spec.sshKeys.includes(key))))
        return { ok: true, hostKeyFingerprint: 'SHA256:plain' };
      return { ok: false, step: 'auth', detail: 'no machine that runs knows the key' };
    },
  };
  readonly driver: ReturnType<typeof driverOf>;
  readonly #platform: Platform<PlainMachine>;

  constructor(clock: Clock, overrides: Partial<DriverManifest> = {}, room?: Room) {
    const manifest: DriverManifest = {
      name: 'simulator',
      stop: true,
      resume: true,
      restart: true,
      attachVolume: 'hot',
      resizeVolume: 'attached',
      createVisibleWithinMs: 0,
      keepsNotes: true,
      cloudInitBytes: 1024 * 1024,
      ...overrides,
    };
    const durations = { boot: AT_ONCE, stop: AT_ONCE, start: AT_ONCE, restart: AT_ONCE, destroy: AT_ONCE };
    let made = 0;
    this.#platform = createPlatform({
      clock,
      machineDraws: nothingDrawn,
      volumeDraws: nothingDrawn,
      rules: {
        manifest,
        durations,
        units: (offerId, datacenter) =>
          room?.find((place) => place.offerId === offerId && place.datacenter === datacenter)?.units ??
          Number.POSITIVE_INFINITY,
        ...(room !== undefined && {
          places: room.map(({ offerId, datacenter }) => ({ offerId, datacenter })),
        }),
        make: () => ({ endpoint: { ...plainEndpoint, sshPort: plainEndpoint.sshPort + made++ } }),
        endpoint: ({ endpoint }) => endpoint ?? undefined,
      },
    });
    this.driver = driverOf(this.#platform, manifest);
  }

  /** As they are now. */
  get machines(): ReadonlyMap<OwnerRef, ObservedMachine> {
    return new Map(this.#platform.machines.list().map((machine) => [machine.ref, machine]));
  }

  get volumes(): ReadonlyMap<OwnerRef, ObservedVolume> {
    return new Map(this.#platform.volumes.list().map((volume) => [volume.ref, volume]));
  }

  /** How often the machine was brought up: by its create, starts and restarts. */
  bootsOf(ref: OwnerRef): number {
    return this.#of(ref).boots;
  }

  /** Something happens to a machine. @throws if there is none */
  change(ref: OwnerRef, change: Partial<PlainMachine>): ObservedMachine {
    this.#platform.machines.change(this.#of(ref), change);
    return this.#platform.machines.show(this.#of(ref));
  }

  /** The platform loses the machine. @throws if there is none */
  lose(ref: OwnerRef): void {
    this.#platform.machines.remove(this.#of(ref), 'lost');
  }

  #of(ref: OwnerRef): PlainMachine {
    const [machine] = this.#platform.machines.of(ref);
    if (machine === undefined) throw new Error(`the platform has no machine ${ref}`);
    return machine;
  }
}
