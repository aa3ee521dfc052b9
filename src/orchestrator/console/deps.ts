import type { RequestEnv } from '../../http/api/request-context.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Sale } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Store } from '../model/store.ts';
import type { Cordonable } from '../operate/actions/cordons.ts';
import type { Operators } from '../operate/keys.ts';
import type { PlatformFacts } from '../operate/views/platforms.ts';
import type { Html } from './frame/parts.ts';
import type { Session } from './sessions.ts';

/** What this process knows of one platform. */
export interface PlatformView {
  driver: { manifest: { name: string } };
  health: { isUp: boolean; isSuspect: boolean };
  losses: { held: number };
}

/** What the console is composed of. */
export interface ConsoleDeps {
  store: Store;
  operators: Operators;
  catalog: Catalog;
  /** By name: as many as are configured. */
  platforms: ReadonlyMap<string, PlatformView>;
  /** What can be cordoned. */
  sold: Cordonable;
  platformFacts: ReadonlyMap<string, PlatformFacts>;
  sale: Sale;
  clock: Clock;
  random: Random;
  log: Log;
  version: string;
  /** The name of this server among those that share the database. */
  server: string;
  trustedProxies: number;
}

export interface ConsoleEnv extends RequestEnv {
  Variables: RequestEnv['Variables'] & { session: Session };
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
export type Page = (deps: ConsoleDeps, request: PageRequest) => Promise<PageContent | null>;
