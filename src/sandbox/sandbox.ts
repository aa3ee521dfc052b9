import type { SandboxClock } from './clock.ts';
import type { SandboxControl } from './control/client.ts';
import type { Faults } from './faults/faults.ts';
import type { Weather } from './faults/weather.ts';
import type { SandboxProvider } from './provider.ts';
import type { Transitions } from './transitions/transitions.ts';

/** A user of the marketplace with a key, and a team of their own that has credit. */
export interface SandboxUser {
  /** Such as `http://sandbox.test/api`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly email: string;
  readonly userId: string;
  readonly teamId: string;
}

/** A mail that the marketplace sent. */
export interface SandboxMail {
  at: number;
  to: string;
  subject: string;
  text: string;
}

/** A tenant of every provider of the sandbox: what it makes, no other account sees. */
export interface SandboxAccount {
  readonly name: string;
  /** By the names of the providers. */
  readonly providers: Readonly<Record<string, { baseUrl: string; apiKey: string }>>;
  /** Absent where there is no marketplace. */
  readonly marketplace?: SandboxUser;
}

/** Providers in this process, each the real orchestrator over a simulated platform. `await using` ends it. */
export interface Sandbox extends AsyncDisposable {
  readonly seed: string;
  readonly clock: SandboxClock;
  /** By name, such as `provider-a`. */
  readonly providers: ReadonlyMap<string, SandboxProvider>;
  /** What the marketplace has sent, the oldest first. */
  readonly mails: readonly SandboxMail[];
  /** What goes wrong: `faults.arm('http-500', { times: 3 })`. */
  readonly faults: Faults;
  /** Faults at random. */
  readonly weather: Weather;
  /** How long transitions take, and what ends them. */
  readonly transitions: Transitions;
  /** The account that is there from the start. */
  readonly defaultAccount: SandboxAccount;
  /** @throws {Error} where there is none of that name; `a` stands for `provider-a` */
  provider(name: string): SandboxProvider;
  /**
   * Answers as the address of the sandbox would, without a port: `/providers/NAME/v1/…` and `/api/…`. A path, or any URL: only its
   * path and query count.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** The control API: reset, snapshots, scenarios, the journal. */
  readonly control: SandboxControl;
  /** What requests to `/control/…` carry as their bearer token. */
  readonly controlKey: string;
  /** Makes an account with a key at every provider; for one test each. Without a name it gets one. */
  account(name?: string): Promise<SandboxAccount>;
  close(): Promise<void>;
}

/** The address that base URLs have where there is no port. */
export const ORIGIN = 'http://sandbox.test';
