import type { SandboxClock } from './clock.ts';
import type { Faults } from './faults/faults.ts';
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

/** A key at every provider of the sandbox. Its resources are invisible to other accounts. */
export interface SandboxAccount {
  readonly name: string;
  /** Access by the names of the providers. */
  readonly providers: Readonly<Record<string, { baseUrl: string; apiKey: string }>>;
  /** Absent without a marketplace. */
  readonly marketplace?: SandboxUser;
}

/** What the control API and scenarios act on. */
export interface SandboxParts {
  readonly seed: string;
  readonly clock: SandboxClock;
  /** Providers by name, such as `provider-a`. */
  readonly providers: ReadonlyMap<string, SandboxProvider>;
  /** The marketplace's sent mails, oldest first. */
  readonly mails: readonly SandboxMail[];
  /** Armed faults: `faults.arm('http-500', { times: 3 })`. */
  readonly faults: Faults;
  /** How long transitions take, and how they end. */
  readonly transitions: Transitions;
  /** The account that exists from the start. */
  readonly defaultAccount: SandboxAccount;
  /** Creates a further account, for a test of a client with two keys. The default name is generated. */
  account(name?: string): Promise<SandboxAccount>;
}
