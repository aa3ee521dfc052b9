import type {
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  PlatformDriver,
  Power,
  Presence,
  Step,
} from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { SshProbe } from '../../../src/ports/ssh-probe.ts';

/** Every machine can be logged in to. */
export const everyProbeWorks: SshProbe = {
  probe: async () => ({ ok: true, hostKeyFingerprint: 'SHA256:plain' }),
};

/** A platform in memory that does at once what it is asked: what a test wants slow or wrong it puts before it. */
export class PlainPlatform {
  readonly machines = new Map<OwnerRef, ObservedMachine>();
  readonly volumes = new Map<OwnerRef, ObservedVolume>();
  /** Of each machine, the restarts that were carried out. */
  readonly restarts = new Map<OwnerRef, Set<string>>();
  /** What each machine was made with. */
  readonly sshKeys = new Map<OwnerRef, readonly string[]>();
  /** Logs in to its machines, which all have the same address: one that runs has to know the keys. */
  readonly ssh: SshProbe = {
    probe: async (_target, keys) => {
      const running = [...this.machines.values()].filter(({ power }) => power === 'running');
      const isLetIn = running.some(({ ref }) => keys.every((key) => this.sshKeys.get(ref)?.includes(key)));
      if (isLetIn) return { ok: true, hostKeyFingerprint: 'SHA256:plain' };
      return { ok: false, step: 'auth', detail: 'no machine that runs knows the key' };
    },
  };
  readonly driver: PlatformDriver;
  readonly #clock: Clock;

  constructor(clock: Clock, manifest: Partial<PlatformDriver['manifest']> = {}) {
    this.#clock = clock;
    this.driver = {
      manifest: {
        name: 'simulator',
        stop: true,
        resume: true,
        restart: true,
        attachVolume: 'hot',
        resizeVolume: 'attached',
        createVisibleWithinMs: 0,
        keepsNotes: true,
        ...manifest,
      },
      get: async (ref) => presence(this.machines.get(ref)),
      list: async () => ({ answer: 'listed', items: [...this.machines.values()] }),
      create: async ({ ref, note, sshKeys }) => {
        this.sshKeys.set(ref, sshKeys);
        const machine = this.machines.get(ref) ?? this.#machine(ref, note);
        this.machines.set(ref, machine);
        return { outcome: 'done', value: machine };
      },
      stop: async (ref) => this.#turn(ref, 'stopped'),
      start: async (ref) => this.#turn(ref, 'running'),
      restart: async (ref, id) => {
        const power = this.machines.get(ref)?.power;
        if (power !== undefined && power !== 'running') return conflict;
        this.restarts.set(ref, (this.restarts.get(ref) ?? new Set()).add(id));
        return this.#turn(ref, 'running');
      },
      destroy: async (ref) => {
        this.machines.delete(ref);
        for (const volume of this.volumes.values()) this.#detach(volume, ref);
        return { outcome: 'done', value: null };
      },
      volumes: {
        get: async (ref) => presence(this.volumes.get(ref)),
        list: async () => ({ answer: 'listed', items: [...this.volumes.values()] }),
        create: async ({ ref, note, sizeGb }) => {
          const fresh = { ref, attachedTo: [], createdAt: clock.now(), sizeGb, note };
          const volume = this.volumes.get(ref) ?? fresh;
          this.volumes.set(ref, volume);
          return { outcome: 'done', value: volume };
        },
        attach: async (ref, machine) => {
          const volume = this.volumes.get(ref);
          if (volume === undefined) return gone;
          this.#detach(volume, machine);
          volume.attachedTo.push(machine);
          return { outcome: 'done', value: null };
        },
        detach: async (ref, machine) => {
          const volume = this.volumes.get(ref);
          if (volume !== undefined) this.#detach(volume, machine);
          return { outcome: 'done', value: null };
        },
        resize: async (ref, sizeGb) => {
          const volume = this.volumes.get(ref);
          if (volume === undefined) return gone;
          volume.sizeGb = sizeGb;
          return { outcome: 'done', value: volume };
        },
        destroy: async (ref) => {
          this.volumes.delete(ref);
          return { outcome: 'done', value: null };
        },
      },
      close: async () => undefined,
    };
  }

  #machine(ref: OwnerRef, note: string): ObservedMachine {
    const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'root' };
    return { ref, power: 'running', createdAt: this.#clock.now(), endpoint, note };
  }

  #turn(ref: OwnerRef, power: Power): Step<ObservedMachine> {
    const machine = this.machines.get(ref);
    if (machine === undefined) return gone;
    const turned = { ...machine, power };
    this.machines.set(ref, turned);
    return { outcome: 'done', value: turned };
  }

  #detach(volume: ObservedVolume, machine: OwnerRef): void {
    volume.attachedTo = volume.attachedTo.filter((held) => held !== machine);
  }
}

const gone: Step<never> = { outcome: 'failed', code: 'gone', sideEffect: 'none', detail: 'it is not there' };
const conflict: Step<never> = {
  outcome: 'failed',
  code: 'conflict',
  sideEffect: 'none',
  detail: 'it does not run',
};

function presence<T>(found: T | undefined): Presence<T> {
  return found === undefined ? { answer: 'gone' } : { answer: 'observed', value: found };
}
