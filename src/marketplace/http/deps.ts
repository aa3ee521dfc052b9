import type { RequestEnv, RequestVariables } from '../../http/api/request-context.ts';
import type { Tracing } from '../../ports/tracing.ts';
import type { Deps } from '../deps.ts';
import type { Caller } from '../model/own-rows.ts';
import type { Authenticator } from '../teams/authenticate.ts';
import type { Metrics } from './metrics.ts';
import type { RateLimits } from './rate-limits.ts';

/** What the HTTP side is composed of. Each route takes the few things that it uses. */
export interface HttpDeps extends Deps {
  authenticator: Authenticator;
  rateLimits: RateLimits;
  metrics: Metrics;
  maxBodyBytes: number;
  /** How many proxies before this server each add what they see to X-Forwarded-For; 0: the header is not read. */
  trustedProxies: number;
  tracing?: Tracing | undefined;
}

/** What middleware leaves for the routes. `caller` is there wherever a credential is required. */
export interface HttpEnv extends RequestEnv {
  Variables: RequestVariables & { caller: Caller };
}
