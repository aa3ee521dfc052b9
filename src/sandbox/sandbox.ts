import type { SandboxClock } from './clock.ts';
import type { SandboxProvider } from './provider.ts';

/** A tenant of every provider of the sandbox: what it makes, no other account sees. */
export interface SandboxAccount {
  readonly name: string;
  /** By the names of the providers. */
  readonly providers: Readonly<Record<string, { baseUrl: string; apiKey: string }>>;
}

/** Providers in this process, each the real orchestrator over a simulated platform. `await using` ends it. */
export interface Sandbox extends AsyncDisposable {
  readonly seed: string;
  readonly clock: SandboxClock;
  /** By name, such as `provider-a`. */
  readonly providers: ReadonlyMap<string, SandboxProvider>;
  /** @throws {Error} where there is none of that name; `a` stands for `provider-a` */
  provider(name: string): SandboxProvider;
  /**
   * Answers as the address of the sandbox would, without a port: `/providers/NAME/v1/…`. A path, or any URL: only its
   * path and query count.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Makes an account with a key at every provider; for one test each. Without a name it gets one. */
  account(name?: string): Promise<SandboxAccount>;
  close(): Promise<void>;
}

/** The address that base URLs have where there is no port. */
export const ORIGIN = 'http://sandbox.test';

/** `a` is short for `provider-a`. */
export function toProviderName(name: string): string {
  return /^[a-z]$/.test(name) ? `provider-${name}` : name;
}
