import { envelopeErrors } from '../../../operators/http/errors.ts';
import type { Operators } from '../../../operators/keys.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { LossCapOptions } from '../../model/options.ts';
import type { Store } from '../../model/store.ts';
import type { KnownProviders } from '../../operate/views/providers.ts';
import type { Metrics } from '../metrics.ts';

/** What the admin listener's API is composed of. Each route takes the few things that it uses. */
export interface OperatorDeps {
  store: Store;
  operators: Operators;
  /** As this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  log: Log;
  maxBodyBytes: number;
  /** How many proxies before this server each add what they see to X-Forwarded-For; 0: the header is not read. */
  trustedProxies: number;
}

/** Not those of the marketplace's users: operators read one envelope, whichever product answers. */
export const errors = envelopeErrors({ server: 'marketplace', store: 'database' });
