import { envelopeErrors } from '../../../operators/http/errors.ts';
import type { Operators } from '../../../operators/keys.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { LossCapOptions } from '../../model/options.ts';
import type { Store } from '../../model/store.ts';
import type { KnownProviders } from '../../operate/views/providers.ts';
import type { Metrics } from '../metrics.ts';

/** Dependencies of the admin listener's API. Each route takes the few that it uses. */
export interface OperatorDeps {
  store: Store;
  operators: Operators;
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  log: Log;
  maxBodyBytes: number;
  /** How many proxies in front of this server append to X-Forwarded-For; 0: the header is ignored. */
  trustedProxies: number;
}

/** The operators' error format, the same for both products. It differs from the users' format. */
export const errors = envelopeErrors({ server: 'marketplace', store: 'database' });
