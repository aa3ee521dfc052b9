import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { invalidRequest } from '../../../contract/errors.ts';
import { toIssues } from '../../../contract/issue-words.ts';
import { newRouter } from '../../../http/api/create-app.ts';
import type { RequestEnv, RequestVariables } from '../../../http/api/request-context.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { Sale } from '../../capacity/deployable.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Actor, OperatorKeyRecord } from '../../model/operator.ts';
import type { Store } from '../../model/store.ts';
import type { Cordonable } from '../../operate/actions/cordons.ts';
import type { Reloaded } from '../../operate/actions/reload.ts';
import type { Operators } from '../../operate/keys.ts';
import type { PlatformFacts } from '../../operate/views/platforms.ts';
import { MAX_PAGE } from '../../operate/views/values.ts';
import type { LossCapOptions } from '../../platform/options.ts';
import type { Metrics } from '../metrics.ts';

/** What the admin listener's API is composed of. Each route takes the few things that it uses. */
export interface OperatorDeps {
  store: Store;
  operators: Operators;
  catalog: Catalog;
  sale: Sale;
  /** Those that this server serves, by name. */
  platforms: ReadonlyMap<string, PlatformFacts>;
  metrics: Metrics;
  /** What can be cordoned. */
  sold: Cordonable;
  /** Reads the catalog of this server anew. @throws {Fatal} */
  reload: (actor: Actor) => Promise<Reloaded>;
  /** How many instances may end as lost. */
  maxLosses: LossCapOptions;
  clock: Clock;
  random: Random;
  log: Log;
  maxBodyBytes: number;
  /** How many proxies before this server each add what they see to X-Forwarded-For; 0: the header is not read. */
  trustedProxies: number;
}

/** What middleware leaves for the routes. */
export interface OperatorEnv extends RequestEnv {
  Variables: RequestVariables & { operator: OperatorKeyRecord };
}

/** How many a page may have. */
export const limitSchema = z.coerce.number().int().min(1).max(MAX_PAGE).optional();

/** Input that does not fit is a 400 that names each path. */
export function createOperatorRouter(): OpenAPIHono<OperatorEnv> {
  return newRouter<OperatorEnv>((failed) => invalidRequest(toIssues(failed)));
}

/** Who asks, as the audit log names them. */
export function actorOf(context: Context<OperatorEnv>): Actor {
  return { name: context.get('operator').name, source: 'api', address: context.get('address') };
}
