import type { Clock, Random } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { MarketplaceOptions } from './model/options.ts';
import type { Store } from './model/store.ts';
import type { Providers } from './providers/provider.ts';

/** Dependencies of the use cases; each use case takes the few that it uses. */
export interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
  log: Log;
  providers: Providers;
  options: MarketplaceOptions;
  /** Eight lower-case hexadecimal digits. The names of everything made at providers contain them. */
  installationId: string;
}
