import type { OwnerRef } from '../orchestrator/model/platform-driver.ts';
import type { Carry, Platform } from '../platform-model/platform.ts';
import type { SshProbe } from '../ports/ssh-probe.ts';
import type { SandboxMachine } from './machines.ts';

/** One orchestrator over one simulated platform. */
export interface SandboxProvider {
  /** Such as `provider-a`. */
  readonly name: string;
  /** Such as `http://sandbox.test/providers/provider-a/v1`. */
  readonly baseUrl: string;
  /** A key of the account `default`. */
  readonly apiKey: string;
  /** The orchestrator, in process, without any {@link Layer}. Its paths begin with `/v1`. */
  readonly app: { fetch(request: Request): Response | Promise<Response> };
  /** The machines and volumes behind its driver. */
  readonly platform: Platform<SandboxMachine>;
  /**
   * Returns the owner of a machine or a volume: its id and status in the API, and the name of its account. Undefined if
   * no row has it.
   */
  ownerOf(ref: OwnerRef): Promise<{ id: string; status: string; account: string } | undefined>;
}

/**
 * A request and its server. `provider` is the server's name, or `marketplace`. The request has the server's own path.
 */
export interface Exchange {
  provider: string;
  request: Request;
  /** The account of the request's key. Absent if the request has no key of the sandbox. */
  account?: string;
}

/** Sits between a client and a server: passes a request on, changed or not, or answers it itself. */
export type Layer = (exchange: Exchange, next: (request: Request) => Promise<Response>) => Promise<Response>;

/**
 * Sits between an orchestrator and its machines, and injects faults into calls. Without a fault, calls pass unchanged.
 */
export interface FaultInjection {
  /** Wraps the driver's calls to the platform of a provider. */
  carry(provider: string): Carry;
  /** Wraps the proof that a machine answers SSH. */
  probe(provider: string, own: SshProbe): SshProbe;
}
