import type { Operators } from '../../../operators/keys.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Log } from '../../../ports/log.ts';
import type { Sale } from '../../capacity/deployable.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../model/store.ts';
import type { Cordonable } from '../../operate/actions/cordons.ts';
import type { Reloaded } from '../../operate/actions/reload.ts';
import type { Doctor } from '../../operate/doctor.ts';
import type { PlatformFacts } from '../../operate/views/platforms.ts';
import type { LossCapOptions } from '../../platform/options.ts';
import type { Metrics } from '../metrics.ts';

/** Dependencies of the admin listener's API. Each route takes only the ones that it uses. */
export interface OperatorDeps {
  store: Store;
  operators: Operators;
  catalog: Catalog;
  sale: Sale;
  /** The platforms of this server, by name. */
  platforms: ReadonlyMap<string, PlatformFacts>;
  metrics: Metrics;
  /** The subjects that can be cordoned. */
  sold: Cordonable;
  /** Reloads the catalog of this server. @throws {Fatal} */
  reload: (actor: Actor) => Promise<Reloaded>;
  doctor: Pick<Doctor, 'report' | 'look'>;
  /** How many instances may end as lost. */
  maxLosses: LossCapOptions;
  clock: Clock;
  random: Random;
  log: Log;
  maxBodyBytes: number;
  /** How many proxies in front of this server add an address to X-Forwarded-For. 0: the header is ignored. */
  trustedProxies: number;
}
