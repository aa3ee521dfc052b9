import type { Carry, Platform } from '../platform-model/platform.ts';
import type { PlatformRules } from '../platform-model/rules.ts';
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

/** What goes wrong, layer by layer. Each member passes on what it is given unless a fault is armed. */
export interface FaultInjection {
  /** HTTP, between the client and the server. */
  layer: Layer;
  /** The calls of the driver to the platform of a provider. */
  carry(provider: string): Carry;
  /** What the platform does by itself: how long it takes, what fails, what it takes away. */
  rules(provider: string, own: PlatformRules<SandboxMachine>): PlatformRules<SandboxMachine>;
  /** The proof that a machine answers SSH. */
  probe(provider: string, own: SshProbe): SshProbe;
}
