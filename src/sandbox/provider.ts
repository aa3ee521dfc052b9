import type { OwnerRef } from '../orchestrator/model/platform-driver.ts';
import type { Platform } from '../platform-model/platform.ts';
import type { SandboxMachine } from './machines.ts';

/** A server in this process. */
export interface Server {
  fetch(request: Request): Response | Promise<Response>;
}

/** One orchestrator over one simulated platform. */
export interface SandboxProvider {
  /** Such as `provider-a`. */
  readonly name: string;
  /** Such as `http://sandbox.test/providers/provider-a/v1`. */
  readonly baseUrl: string;
  /** A key of the account `default`. */
  readonly apiKey: string;
  /** The orchestrator, in process, without any {@link Layer}. Its paths begin with `/v1`. */
  readonly app: Server;
  /** The machines and volumes behind its driver. */
  readonly platform: Platform<SandboxMachine>;
  /** Returns the instance or volume of a machine or a volume of the platform. Undefined if no row has it. */
  resourceOf(ref: OwnerRef): Promise<Resource | undefined>;
  /**
   * Makes the orchestrator ask for a machine or a volume now. Call it after a change in `platform`: the orchestrator asks
   * only when it expects a change.
   */
  wake(ref: OwnerRef): void;
  /** Number of changes of machines, volumes and instances so far. */
  readonly changes: number;
}

/** What faults and transitions act on. */
export type FaultTarget = Pick<SandboxProvider, 'platform' | 'resourceOf' | 'wake' | 'changes'>;

/** Targets by the names of the providers. */
export type Targets = ReadonlyMap<string, FaultTarget>;

/** An instance or volume, by its id and status in the API. */
export interface Resource {
  id: string;
  status: string;
}

/**
 * A request, its server and its account, which is absent for an unknown credential, and `marketplace` for what the
 * marketplace sends. `provider` is the server's name, or `marketplace`. The request has the server's own path.
 */
export interface Exchange {
  provider: string;
  account?: string | undefined;
  request: Request;
  /** Identifies the connection: its socket, or in process an object in its place. */
  connection?: object;
}

/** Sits between a client and a server: passes a request on, changed or not, or answers it itself. */
export type Layer = (exchange: Exchange, next: (request: Request) => Promise<Response>) => Promise<Response>;
