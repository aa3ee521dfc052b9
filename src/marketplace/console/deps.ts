import type { Action as AnyAction, Page as AnyPage, ConsoleBase } from '../../operators/console/deps.ts';
import type { LossCapOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import type { KnownProviders } from '../operate/views/providers.ts';

/** What the console is composed of. */
export interface ConsoleDeps extends ConsoleBase {
  store: Store;
  /** As this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

export type Page = AnyPage<ConsoleDeps>;
export type Action = AnyAction<ConsoleDeps>;
