import type { RequestEnv } from '../../http/api/request-context.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Operators } from '../keys.ts';
import type { Actor } from '../model.ts';
import type { Operation } from '../operation.ts';
import type { Look, TabMark } from './layout.ts';
import type { Html } from './parts.ts';
import type { Session, SessionStore } from './sessions.ts';

/** The parts of every product's console. Its pages require more. */
export interface ConsoleBase {
  store: SessionStore;
  operators: Pick<Operators, 'ofKey' | 'ofId'>;
  clock: Clock;
  random: Random;
  log: Log;
  version: string;
  /** The name of this server among those that share the database. */
  server: string;
  /** Number of proxies before this server, each of which appends to X-Forwarded-For. With 0, the header is not read. */
  trustedProxies: number;
}

/** A product's parts of its console. */
export interface ConsoleParts<Deps> {
  look: Look;
  /** Every page below `/console`, by path. */
  pages: readonly (readonly [path: string, page: Page<Deps>])[];
  /** Operators' actions. An action with a form has a page below `/console/actions`. */
  actions: readonly Operation<Deps>[];
  markTab: (deps: Deps) => Promise<TabMark>;
}

export interface ConsoleEnv extends RequestEnv {
  Variables: RequestEnv['Variables'] & { session: Session; form: URLSearchParams };
}

/** The input of a page. */
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

/** Renders a page. Null means not found. */
export type Page<Deps> = (deps: Deps, request: PageRequest) => Promise<PageContent | null>;

/** A form of the session. Its CSRF token is already checked. */
export interface FormRequest {
  actor: Actor;
  field: (name: string) => string | undefined;
}
