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
  /** The orchestrator, in process, below every {@link Layer}: its paths begin with `/v1`. */
  readonly app: { fetch(request: Request): Response | Promise<Response> };
  /** The machines and volumes behind its driver. */
  readonly platform: Platform<SandboxMachine>;
  /** Of a machine or a volume: its id and its status in the API, and the name of its account; undefined: no row has it. */
  ownerOf(ref: OwnerRef): Promise<{ id: string; status: string; account: string } | undefined>;
}

/** A request and whom it is for. `provider`: its name, or `marketplace`. The path is that of the server itself. */
export interface Exchange {
  provider: string;
  request: Request;
  /** Who asks, by the key that the request carries; absent: no key of the sandbox. */
  account?: string;
}

/** Stands between a client and a server: passes a request on, changed or not, or answers it itself. */
export type Layer = (exchange: Exchange, next: (request: Request) => Promise<Response>) => Promise<Response>;

/** What stands between an orchestrator and its machines: passes on what it is given unless something is to go wrong. */
export interface FaultInjection {
  /** The calls of the driver to the platform of a provider. */
  carry(provider: string): Carry;
  /** The proof that a machine answers SSH. */
  probe(provider: string, own: SshProbe): SshProbe;
}
