import type { ProbeResult, SshProbe } from '../../../src/ports/ssh-probe.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { CallFaults } from './call-faults.ts';
import { SSH_PORT } from './platform.ts';
import type { AllMachines } from './sites.ts';

/** A successful probe: when, at which address, and with which keys. */
export interface Proof {
  at: number;
  host: string;
  keys: readonly string[];
}

const KEPT_PROOFS = 8;

/** Answers SSH probes as the true machines would. */
export class SimulatedSsh {
  readonly #parts: { scheduler: Scheduler; machines: AllMachines; chance: Chance; faults: CallFaults };
  /** The successful probes of the machines of each owner ref, the last first. */
  readonly #proofs = new Map<string, Proof[]>();

  constructor(parts: { scheduler: Scheduler; machines: AllMachines; chance: Chance; faults: CallFaults }) {
    this.#parts = parts;
  }

  /** The last successful probe with all `keys`; without one, the last with any. */
  proof(ref: string, keys: readonly string[]): Proof | undefined {
    const proofs = this.#proofs.get(ref) ?? [];
    return proofs.find((proof) => keys.every((key) => proof.keys.includes(key))) ?? proofs[0];
  }

  of(process: ServerProcess): SshProbe {
    const { chance, faults, scheduler } = this.#parts;
    const parts = { chance, scheduler, isCalm: () => faults.isOver };
    return simulatedProbe(process, parts, (target, keys, fingerprint) =>
      this.#probe(target, keys, fingerprint),
    );
  }

  #probe(
    { host, port }: { host: string; port: number },
    keys: readonly string[],
    fingerprint?: string,
  ): ProbeResult {
    const { machines, scheduler } = this.#parts;
    const machine = machines
      .all()
      .find(({ ip, power }) => ip === host && port === SSH_PORT && power === 'running');
    if (machine === undefined || machine.sshReadyAt > scheduler.now) return REFUSED;
    const { ref, sshKeys } = machine.spec;
    const result = logIn({ hostKey: machine.hostKey, keys: sshKeys }, keys, fingerprint);
    const proof = { at: scheduler.now, host, keys };
    if (result.ok) this.#proofs.set(ref, [proof, ...(this.#proofs.get(ref) ?? [])].slice(0, KEPT_PROOFS));
    return result;
  }
}

export const REFUSED = { ok: false, step: 'connect', detail: 'connection refused' } as const;

type Answer = (...args: Parameters<SshProbe['probe']>) => ProbeResult;

/** The probes of a process: `answer`, sometimes after a pause, and sometimes broken off unless `isCalm`. */
export function simulatedProbe(
  process: ServerProcess,
  { chance, scheduler, isCalm }: { chance: Chance; scheduler: Scheduler; isCalm: () => boolean },
  answer: Answer,
): SshProbe {
  return {
    probe: (...args) =>
      process.reach(async () => {
        if (chance.happens(0.3)) await scheduler.sleep(chance.between(20, 900));
        if (!isCalm() && chance.happens(0.05))
          return { ok: false, step: 'banner', detail: 'the connection broke off' };
        return answer(...args);
      }),
  };
}

/** The answer of a machine that accepts connections. */
export function logIn(
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
