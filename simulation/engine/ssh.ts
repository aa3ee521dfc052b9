import type { OwnerRef } from '../../src/orchestrator/model/platform-driver.ts';
import type { ProbeResult, SshProbe } from '../../src/ports/ssh-probe.ts';
import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import { logIn, type Proof, REFUSED, simulatedProbe } from '../orchestrator/platform/ssh.ts';
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
    return simulatedProbe(process, this.#parts, (target, keys, fingerprint) =>
      this.#probe(target, keys, fingerprint),
    );
  }

  #probe(
    { host, port }: { host: string; port: number },
    keys: readonly string[],
    fingerprint?: string,
  ): ProbeResult {
    const { engine, scheduler } = this.#parts;
    const found = engine.guestAt(host, port);
    if (found === undefined || found.readyAt > scheduler.now) return REFUSED;
    const { guest, machine } = found;
    const result = logIn(guest, keys, fingerprint);
    if (result.ok && machine.ref !== undefined)
      this.#proofs.set(machine.ref, { at: scheduler.now, host, keys });
    return result;
  }
}
