import type { SandboxControl } from './control/client.ts';
import type { SandboxParts } from './parts.ts';
import type { SandboxProvider } from './provider.ts';
import type { Verdict, VerdictOptions } from './verdict/verdict.ts';

/** Providers in this process, each the real orchestrator over a simulated platform. `await using` ends it. */
export interface Sandbox extends SandboxParts, AsyncDisposable {
  /** @throws {Error} if there is no provider of that name; `a` stands for `provider-a` */
  provider(name: string): SandboxProvider;
  /**
   * Answers like the sandbox's address, without a port: `/providers/NAME/v1/…` and `/api/…`. Takes a path or any URL:
   * only path and query count.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** The control API: reset, snapshots, scenarios, the journal. */
  readonly control: SandboxControl;
  /** Bearer token of requests to `/control/…`. It is drawn at random, unless `control_key` gives it. */
  readonly controlKey: string;
  /**
   * Serves the sandbox at a port, for clients that take no `fetch`. Base URLs have its address until it is closed.
   * @throws {Fatal} if the address is unavailable, or the sandbox is served already
   */
  listen(options?: ListenOptions): Promise<SandboxListener>;
  /**
   * Judges the client by its requests so far: whether it does what the contract says of a client, also after faults. Ask at
   * the end of a test, when the client has destroyed what it created.
   */
  verdict(options?: VerdictOptions): Promise<Verdict>;
  /** Ends the sandbox. @throws {Error} if a fault that had to trigger (`must_trigger`) never did */
  close(): Promise<void>;
}

export interface ListenOptions {
  /** Default `127.0.0.1`. */
  host?: string;
  /** Default: any free port. */
  port?: number;
  /** Host names that requests may be for, besides addresses, `localhost` and `host`. Others are answered 421. */
  hosts?: readonly string[];
  /** Whether it serves HTTPS, with a certificate of its own CA. Default: HTTP. */
  tls?: boolean;
}

/** A served sandbox. */
export interface SandboxListener extends AsyncDisposable {
  /** Such as `http://127.0.0.1:8099`. */
  readonly origin: string;
  /** Where the control API answers over HTTP: with `tls` at another port, where no fault of TLS triggers. */
  readonly controlOrigin: string;
  /** The certificate of the CA, in PEM, that clients must trust. Undefined without `tls`. */
  readonly ca?: string;
  close(): Promise<void>;
}

/** The origin of base URLs if no port is used. */
export const ORIGIN = 'http://sandbox.test';
