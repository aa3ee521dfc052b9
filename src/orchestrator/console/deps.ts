import type { Action as AnyAction, Page as AnyPage, ConsoleBase } from '../../operators/console/deps.ts';
import type { Sale } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Store } from '../model/store.ts';
import type { Cordonable } from '../operate/actions/cordons.ts';
import type { Doctor } from '../operate/doctor.ts';
import type { PlatformFacts } from '../operate/views/platforms.ts';

/** The state of one platform in this process. */
export interface PlatformView {
  driver: { manifest: { name: string } };
  health: { isUp: boolean; isSuspect: boolean };
  losses: { held: number };
}

/** Dependencies of the console. */
export interface ConsoleDeps extends ConsoleBase {
  store: Store;
  catalog: Catalog;
  /** The configured platforms by name. */
  platforms: ReadonlyMap<string, PlatformView>;
  /** The subjects that can be cordoned. */
  sold: Cordonable;
  platformFacts: ReadonlyMap<string, PlatformFacts>;
  sale: Sale;
  doctor: Pick<Doctor, 'report' | 'look'>;
}

export type Page = AnyPage<ConsoleDeps>;
export type Action = AnyAction<ConsoleDeps>;
