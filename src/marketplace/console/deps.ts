import type { Action as AnyAction, Page as AnyPage, ConsoleBase } from '../../operators/console/deps.ts';
import type { LossCapOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import type { KnownProviders } from '../operate/views/providers.ts';

/** Dependencies of the console. */
export interface ConsoleDeps extends ConsoleBase {
  store: Store;
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

export type Page = AnyPage<ConsoleDeps>;
export type Action = AnyAction<ConsoleDeps>;
