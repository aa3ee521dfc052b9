import type { RequestEnv, RequestVariables } from '../../http/api/request-context.ts';
import type { Tracing } from '../../ports/tracing.ts';
import type { Deps } from '../deps.ts';
import type { Caller } from '../model/own-rows.ts';
import type { Authenticator } from '../teams/authenticate.ts';
import type { Metrics } from './metrics.ts';
import type { RateLimits } from './rate-limits.ts';

export interface HttpDeps extends Deps {
  authenticator: Authenticator;
  rateLimits: RateLimits;
  metrics: Metrics;
  /** How many proxies in front of this server append to X-Forwarded-For; 0: the header is ignored. */
  trustedProxies: number;
  /** Origins of web pages that may call the API. */
  corsOrigins: readonly string[];
  tracing?: Tracing | undefined;
}

/** Values that middleware sets for the routes. `caller` is set wherever a credential is required. */
export interface HttpEnv extends RequestEnv {
  Variables: RequestVariables & { caller: Caller; isReplay?: boolean };
}
