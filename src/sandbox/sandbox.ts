import type { SandboxClock } from './clock.ts';
import type { SandboxControl } from './control/client.ts';
import type { Faults } from './faults/faults.ts';
import type { Weather } from './faults/weather.ts';
import type { SandboxProvider } from './provider.ts';
import type { Transitions } from './transitions/transitions.ts';

/** A user of the marketplace with a key, and their team, which has credit. */
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

/** A tenant of every provider of the sandbox. Its resources are invisible to other accounts. */
export interface SandboxAccount {
  readonly name: string;
  /** Access by the names of the providers. */
  readonly providers: Readonly<Record<string, { baseUrl: string; apiKey: string }>>;
  /** Absent if there is no marketplace. */
  readonly marketplace?: SandboxUser;
}

/** Providers in this process, each the real orchestrator over a simulated platform. `await using` ends it. */
export interface Sandbox extends AsyncDisposable {
  readonly seed: string;
  readonly clock: SandboxClock;
  /** Providers by name, such as `provider-a`. */
  readonly providers: ReadonlyMap<string, SandboxProvider>;
  /** The marketplace's sent mails, oldest first. */
  readonly mails: readonly SandboxMail[];
  /** Armed faults: `faults.arm('http-500', { times: 3 })`. */
  readonly faults: Faults;
  readonly weather: Weather;
  /** How long transitions take, and how they end. */
  readonly transitions: Transitions;
  /** The account that exists from the start. */
  readonly defaultAccount: SandboxAccount;
  /** @throws {Error} if there is no provider of that name; `a` stands for `provider-a` */
  provider(name: string): SandboxProvider;
  /**
   * Answers like the sandbox's address, without a port: `/providers/NAME/v1/…` and `/api/…`. Takes a path or any URL:
   * only path and query count.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** The control API: reset, snapshots, scenarios, the journal. */
  readonly control: SandboxControl;
  /** Bearer token of requests to `/control/…`. */
  readonly controlKey: string;
  /** Creates an account with a key at every provider, such as one for each test. The default name is generated. */
  account(name?: string): Promise<SandboxAccount>;
  close(): Promise<void>;
}

/** The origin of base URLs if no port is used. */
export const ORIGIN = 'http://sandbox.test';
