import type { ListStreams } from '../../http/api/list-streams.ts';
import type { RequestEnv, RequestVariables } from '../../http/api/request-context.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Tracing } from '../../ports/tracing.ts';
import type { Authenticator, Principal } from '../accounts/authenticate.ts';
import type { PasswordChecks } from '../accounts/password-checks.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { Supply } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { PolledReads } from '../instances/polled-reads.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { ReadUsage } from '../volumes/storage.ts';
import type { Metrics } from './metrics.ts';
import type { FailedLogins, RateLimits } from './rate-limits.ts';

/** Dependencies of the HTTP side. Each route takes only the ones that it uses. */
export interface HttpDeps {
  store: Store;
  catalog: Catalog;
  manifests: Manifests;
  supply: Supply;
  readUsage: ReadUsage;
  authenticator: Authenticator;
  polledReads: PolledReads;
  passwordChecks: PasswordChecks;
  rateLimits: RateLimits;
  listStreams: ListStreams;
  failedLogins: FailedLogins;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  log: Log;
  quotas: Quotas;
  /** How many proxies in front of this server add an address to X-Forwarded-For. With 0, the header is ignored. */
  trustedProxies: number;
  tracing?: Tracing | undefined;
}

/** The variables that middleware sets for the routes. */
export interface HttpEnv extends RequestEnv {
  Variables: RequestVariables & {
    principal: Principal;
    /** Whether the body is made while it is sent. */
    isStreamed: boolean | undefined;
  };
}
