import type { RequestEnv } from '../../http/api/request-context.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { AuditedStore } from '../audit.ts';
import type { Operators } from '../keys.ts';
import type { Actor } from '../model.ts';
import type { Look, TabMark } from './layout.ts';
import type { Html } from './parts.ts';
import type { Session } from './sessions.ts';

/** What the console of either product is composed of; its pages ask for more. */
export interface ConsoleBase {
  store: AuditedStore;
  operators: Pick<Operators, 'ofKey' | 'ofId'>;
  clock: Clock;
  random: Random;
  log: Log;
  version: string;
  /** The name of this server among those that share the database. */
  server: string;
  /** How many proxies before this server each add what they see to X-Forwarded-For; 0: the header is not read. */
  trustedProxies: number;
}

/** What a product makes its console of. */
export interface ConsoleParts<Deps> {
  look: Look;
  /** Every page below `/console`, by its path. */
  pages: readonly (readonly [path: string, page: Page<Deps>])[];
  /** Every form below `/console`, by where it is sent. */
  forms: readonly (readonly [path: string, action: Action<Deps>])[];
  markTab: (deps: Deps) => Promise<TabMark>;
  /** Calls `changed` after each commit that a page may show; returns what ends that. Absent: pages are read again every ten seconds. */
  subscribe?: (changed: () => void) => () => void;
}

export interface ConsoleEnv extends RequestEnv {
  Variables: RequestEnv['Variables'] & { session: Session; form: URLSearchParams };
}

/** What a page is asked with. */
export interface PageRequest {
  now: number;
  session: Session;
  params: Readonly<Record<string, string>>;
  query: (name: string) => string | undefined;
}

export interface PageContent {
  title: string;
  body: Html;
}

/** Null: there is no such thing. */
export type Page<Deps> = (deps: Deps, request: PageRequest) => Promise<PageContent | null>;

/** A form of the session, whose CSRF token is checked already. */
export interface FormRequest {
  actor: Actor;
  field: (name: string) => string | undefined;
}

/** Does what a form asks for; returns the page that is shown next. What it throws is shown as the reason. */
export type Action<Deps> = (deps: Deps, request: FormRequest) => Promise<string>;
