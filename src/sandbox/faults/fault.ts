import type { z } from 'zod';
import type { Fault as CallFault } from '../../platform-model/call-faults.ts';
import type { Method } from '../../platform-model/platform.ts';
import type { MachineRecord } from '../../platform-model/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ProbeResult } from '../../ports/ssh-probe.ts';
import type { SandboxMachine, SandboxPlatform } from '../machines.ts';

/** The layers of faults, from the client's side to the machine's. */
export const faultLayers = {
  connection: 'The connection between the client and the server.',
  answer: 'What an answer of the server says. The request itself is carried out.',
  status: 'The server answers something else, mostly without carrying out the request.',
  platform: 'The calls of the orchestrator’s driver to its platform.',
  machine: 'What a platform or a guest does to a machine by itself.',
  ssh: 'What somebody finds who logs in to a machine.',
} as const;

/** Time that a request can wait for: virtual time passes for it. */
export interface FaultClock extends Clock {
  during<T>(work: Promise<T>): Promise<T>;
}

/** One time that an armed fault strikes. */
export interface Strike<P> {
  params: P;
  clock: FaultClock;
  /** Counts the strikes of this armed fault, from 1. */
  nth: number;
  /** The instance or volume to which it is restricted. */
  resource: string | undefined;
  /** What it remembers from strike to strike. */
  memory: Map<string, unknown>;
  /** A number in [0, 1) that depends on the seed and on what was struck before, only. */
  draw(name: string): number;
}

interface Row<S extends z.ZodObject> {
  /** What happens, in one sentence. */
  does: string;
  /** The sentence of the contract (O:), the design or the marketplace (M:) that somebody relies on and that fails. */
  strikes: string;
  params: S;
  /** How often it strikes unless told otherwise. Absent: once. */
  times?: 'sticky';
  /** The requirements of the conformance suite that fail while it is sticky. Absent: it is no breach of a sentence. */
  reddens?: readonly string[];
}

/** Stands in the way of a request. */
export interface HttpFault<S extends z.ZodObject = z.ZodObject> extends Row<S> {
  layer: 'connection' | 'answer' | 'status';
  /** Such as `GET /instances/{id}`; `*` is any. */
  on: readonly string[];
  /** Whether lists are changed too, when it is restricted to one resource. */
  changesLists?: true;
  /** `ask` has the request carried out, as often as it is called. */
  answer(
    strike: Strike<z.infer<S>> & { request: Request },
    ask: (request?: Request) => Promise<Response>,
  ): Promise<Response>;
}

/** Goes wrong with a call of the driver. */
export interface PlatformFault<S extends z.ZodObject = z.ZodObject> extends Row<S> {
  layer: 'platform';
  on: readonly Method[];
  fault(strike: Strike<z.infer<S>>, method: Method): CallFault;
}

/** Happens to a machine. */
export interface MachineFault<S extends z.ZodObject = z.ZodObject> extends Row<S> {
  layer: 'machine';
  on: readonly never[];
  /** `status`: of its instance; undefined: none has it. */
  fits(machine: MachineRecord, status: string | undefined): boolean;
  happen(
    strike: Strike<z.infer<S>>,
    at: { machines: SandboxPlatform['machines']; machine: SandboxMachine },
  ): void;
}

/** Meets whoever logs in. */
export interface SshFault<S extends z.ZodObject = z.ZodObject> extends Row<S> {
  layer: 'ssh';
  on: readonly never[];
  probe(
    strike: Strike<z.infer<S>> & {
      keys: readonly string[];
      pinned: string | undefined;
      withinMs: number | undefined;
    },
    own: () => Promise<ProbeResult>,
  ): Promise<ProbeResult>;
}

export type Fault = HttpFault | PlatformFault | MachineFault | SshFault;
