import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Authenticator, Principal } from '../accounts/authenticate.ts';
import type { Sale } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { PolledReads } from '../instances/polled-reads.ts';
import type { DriverManifest } from '../ports/platform-driver.ts';
import type { Store } from '../ports/store.ts';
import type { Metrics } from './metrics.ts';
import type { RateLimits } from './rate-limits.ts';

/** What the HTTP side is composed of. Each route takes the few things that it uses. */
export interface HttpDeps {
  store: Store;
  catalog: Catalog;
  manifest: DriverManifest;
  platform: Sale;
  authenticator: Authenticator;
  polledReads: PolledReads;
  rateLimits: RateLimits;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  log: Log;
  tokenTtlMs: number;
  maxBodyBytes: number;
}

/** What middleware leaves for the routes. */
export interface HttpEnv {
  Variables: { requestId: string; principal: Principal };
  Bindings: { incoming?: { socket: { remoteAddress?: string } } };
}
