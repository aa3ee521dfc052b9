import type { Clock, Random } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { MarketplaceOptions } from './model/options.ts';
import type { Sender } from './model/sender.ts';
import type { Store } from './model/store.ts';
import type { Providers } from './providers/provider.ts';

/** What the use cases are made of; each takes the few that it uses. */
export interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
  log: Log;
  providers: Providers;
  options: MarketplaceOptions;
  /** None: other processes send what is asked for here. */
  sender?: Sender;
  /** Eight lower-case hexadecimal digits: what it makes at providers carries them in its name. */
  installationId: string;
}
