import type { OwnerRef } from '../../src/orchestrator/model/platform-driver.ts';
import type { ProbeResult, SshProbe } from '../../src/ports/ssh-probe.ts';
import type { Scheduler } from '../../testing/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Proof } from '../orchestrator/platform/ssh.ts';
import type { Engine } from './engine.ts';

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  engine: Pick<Engine, 'guestAt'>;
  isCalm: () => boolean;
}

/** Answers SSH probes as the guests of the engine would. */
export class GuestSsh {
  readonly #parts: Parts;
  /** The last successful probe of the machine of each ref. */
  readonly #proofs = new Map<OwnerRef, Proof>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  proof(ref: OwnerRef): Proof | undefined {
    return this.#proofs.get(ref);
  }

  of(process: ServerProcess): SshProbe {
    const { chance, scheduler, isCalm } = this.#parts;
    return {
      probe: (target, keys, fingerprint) =>
        process.reach(async () => {
          if (chance.happens(0.3)) await scheduler.sleep(chance.between(20, 900));
          if (!isCalm() && chance.happens(0.05))
            return { ok: false, step: 'banner', detail: 'the connection broke off' };
          return this.#probe(target, keys, fingerprint);
        }),
    };
  }

  #probe(
    { host, port }: { host: string; port: number },
    keys: readonly string[],
    fingerprint?: string,
  ): ProbeResult {
    const { engine, scheduler } = this.#parts;
    const found = engine.guestAt(host, port);
    if (found === undefined || found.readyAt > scheduler.now)
      return { ok: false, step: 'connect', detail: 'connection refused' };
    const { guest, machine } = found;
    if (fingerprint !== undefined && fingerprint !== guest.hostKey)
      return { ok: false, step: 'host_key', detail: 'another host key' };
    const keyIndex = keys.findIndex((key) => !guest.keys.includes(key));
    if (keyIndex !== -1) return { ok: false, step: 'auth', keyIndex, detail: 'the key was refused' };
    if (machine.ref !== undefined) this.#proofs.set(machine.ref, { at: scheduler.now, host, keys });
    return { ok: true, hostKeyFingerprint: guest.hostKey };
  }
}
