import type { OwnerRef } from '../../../src/orchestrator/model/platform-driver.ts';
import type { ProbeResult, SshProbe } from '../../../src/ports/ssh-probe.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';

/** A successful probe: when, at which address, and with which keys. */
export interface Proof {
  at: number;
  host: string;
  keys: readonly string[];
}

const KEPT_PROOFS = 8;

/** What an SSH probe finds at an address. */
interface Guest {
  /** The ref of its machine; undefined: that is none of ours. */
  ref: OwnerRef | undefined;
  hostKey: string;
  keys: readonly string[];
  readyAt: number;
}

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  isCalm: () => boolean;
  /** Undefined: no machine that runs has the address. */
  guestAt(host: string, port: number): Guest | undefined;
}

/** Answers SSH probes as the true machines would. */
export class SimulatedSsh {
  readonly #parts: Parts;
  /** The successful probes of the machines of each owner ref, the last first. */
  readonly #proofs = new Map<string, Proof[]>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The last successful probe with all `keys`; without one, the last with any. */
  proof(ref: string, keys: readonly string[]): Proof | undefined {
    const proofs = this.#proofs.get(ref) ?? [];
    return proofs.find((proof) => keys.every((key) => proof.keys.includes(key))) ?? proofs[0];
  }

  /** The probes of a process: answered, sometimes after a pause, and sometimes broken off. */
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
    const { guestAt, scheduler } = this.#parts;
    const guest = guestAt(host, port);
    if (guest === undefined || guest.readyAt > scheduler.now) return REFUSED;
    const result = logIn(guest, keys, fingerprint);
    const { ref } = guest;
    if (!result.ok || ref === undefined) return result;
    const proof = { at: scheduler.now, host, keys };
    this.#proofs.set(ref, [proof, ...(this.#proofs.get(ref) ?? [])].slice(0, KEPT_PROOFS));
    return result;
  }
}

const REFUSED = { ok: false, step: 'connect', detail: 'connection refused' } as const;

/** The answer of a machine that accepts connections. */
function logIn(
  { hostKey, keys: accepted }: { hostKey: string; keys: readonly string[] },
  keys: readonly string[],
  fingerprint?: string,
): ProbeResult {
  if (fingerprint !== undefined && fingerprint !== hostKey)
    return { ok: false, step: 'host_key', detail: 'another host key' };
  const keyIndex = keys.findIndex((key) => !accepted.includes(key));
  if (keyIndex !== -1) return { ok: false, step: 'auth', keyIndex, detail: 'the key was refused' };
  return { ok: true, hostKeyFingerprint: hostKey };
}
