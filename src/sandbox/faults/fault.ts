import { z } from 'zod';
import type { Fault as CallFault } from '../../platform-model/call-faults.ts';
import type { Method } from '../../platform-model/platform.ts';
import type { MachineRecord } from '../../platform-model/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ProbeResult } from '../../ports/ssh-probe.ts';
import type { SandboxMachine, SandboxPlatform } from '../machines.ts';

/** The layers of faults, from the client's side to the machine's. */
export const faultLayers = {
  tls: 'The TLS handshake of a connection, before any request: at the address of the whole sandbox, for no `provider`, `route`, `instance` or `volume`. In process, each request begins with one.',
  connection: 'The connection between the client and the server.',
  answer: 'The content of the server’s answer. The request itself is carried out.',
  status: 'The server answers another status, mostly without carrying out the request.',
  platform: 'The calls of the orchestrator’s driver to its platform.',
  machine: 'Spontaneous changes of a machine by the platform or the guest.',
  ssh: 'The result of an SSH login to a machine.',
} as const;

/** Longer than any wait. */
export const NEVER_MS = 10 * 365 * 86_400_000;

/** A clock that requests can wait for: virtual time passes meanwhile. */
export interface FaultClock extends Clock {
  during<T>(work: Promise<T>): Promise<T>;
}

export interface Trigger<P> {
  params: P;
  clock: FaultClock;
  /** How often it has triggered, this time included. */
  nth: number;
  /** The instance or volume to which it is restricted. */
  resource: string | undefined;
  /** When it stops triggering on every occasion: infinite until it is disarmed, in the past if each occasion may be spared. */
  sureUntil: number;
  /** For a fault of connections: number of this request since the fault affected its connection, from 1. */
  nthOnConnection: number;
  /** State that the fault keeps from one time to the next. */
  memory: Map<string, unknown>;
  /** A number in [0, 1) that depends only on the seed and on the earlier times. */
  draw(name: string): number;
}

interface Row<Layer, S extends z.ZodRawShape> {
  layer: Layer;
  /** Such as `GET /instances/{id}`, or a call of the driver; `*` is any. Empty if it has no routes. */
  on: readonly string[];
  /** The effect, in one sentence. */
  does: string;
  /** The sentence of the contract (O:), the design or the marketplace (M:) that the fault violates. */
  rule: string;
  /** Its own settings. */
  params: z.ZodObject<S>;
  /** How often it triggers by default. If absent, once. */
  times?: 'sticky';
  /** Requirements of the conformance suite that fail while the fault is sticky. Absent if it violates none. */
  reddens?: readonly string[];
}
/** What a row of the table may have besides its words and its effect. */
export type More<S extends z.ZodRawShape> = Partial<
  Pick<Row<string, S>, 'on' | 'times' | 'reddens'> & { params: S }
>;
type Params<S extends z.ZodRawShape> = z.output<z.ZodObject<S>>;

export interface HttpFault<S extends z.ZodRawShape = z.ZodRawShape>
  extends Row<'connection' | 'answer' | 'status', S> {
  /** Whether lists are also changed when it is restricted to one resource. */
  changesLists?: boolean;
  /**
   * Whether it affects connections: `times` counts these, and until it is disarmed it meets every later request on one that
   * it affected.
   */
  isOfConnections?: true;
  /** `ask` sends the request to the server. It may be called repeatedly. */
  answer(
    trigger: Trigger<Params<S>> & { request: Request },
    ask: (request?: Request) => Promise<Response>,
  ): Promise<Response>;
}

/** A fault of requests: by default of all of them, and without settings. */
export function httpFault<S extends z.ZodRawShape = Record<never, never>>(
  layer: HttpFault['layer'],
  { params = {} as S, on = ['*'], ...row }: Omit<HttpFault<S>, 'layer' | 'on' | 'params'> & More<S>,
): HttpFault<S> {
  return { layer, on, params: z.object(params), ...row };
}

/** Why a connection breaks, as Node's `fetch` says it. `UND_ERR_SOCKET`: the server closed its half. */
export type BreakCode =
  | 'ECONNRESET'
  | 'ECONNREFUSED'
  | 'UND_ERR_SOCKET'
  | 'CERT_HAS_EXPIRED'
  | 'ERR_TLS_CERT_ALTNAME_INVALID';

export interface TlsFault extends Row<'tls', Record<never, never>> {
  /** The certificate that the server shows. Absent: it resets the connection. */
  certificate?: 'expired' | 'wrong-name';
  /** What a client sees that checks certificates. */
  code: BreakCode;
}

export interface PlatformFault<S extends z.ZodRawShape = z.ZodRawShape> extends Row<'platform', S> {
  fault(trigger: Trigger<Params<S>>, method: Method): CallFault;
}

export interface MachineFault<S extends z.ZodRawShape = z.ZodRawShape> extends Row<'machine', S> {
  fits(machine: MachineRecord): boolean;
  /** The only status of its instance that it fits. Absent: any, or no instance at all. */
  status?: 'ONLINE' | 'STOPPED';
  happen(
    trigger: Trigger<Params<S>>,
    at: { machines: SandboxPlatform['machines']; machine: SandboxMachine },
  ): void;
}

export interface SshFault extends Row<'ssh', Record<never, never>> {
  probe(
    trigger: Pick<Trigger<unknown>, 'clock'> & {
      keys: readonly string[];
      pinned: string | undefined;
      withinMs: number | undefined;
    },
    own: () => Promise<ProbeResult>,
  ): Promise<ProbeResult>;
}

export type Fault = TlsFault | HttpFault | PlatformFault | MachineFault | SshFault;
