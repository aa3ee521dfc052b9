import type { Action as AnyAction, Page as AnyPage, ConsoleBase } from '../../operators/console/deps.ts';
import type { Sale } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Store } from '../model/store.ts';
import type { Cordonable } from '../operate/actions/cordons.ts';
import type { Doctor } from '../operate/doctor.ts';
import type { PlatformFacts } from '../operate/views/platforms.ts';

/** What this process knows of one platform. */
export interface PlatformView {
  driver: { manifest: { name: string } };
  health: { isUp: boolean; isSuspect: boolean };
  losses: { held: number };
}

/** What the console is composed of. */
export interface ConsoleDeps extends ConsoleBase {
  store: Store;
  catalog: Catalog;
  /** By name: as many as are configured. */
  platforms: ReadonlyMap<string, PlatformView>;
  /** What can be cordoned. */
  sold: Cordonable;
  platformFacts: ReadonlyMap<string, PlatformFacts>;
  sale: Sale;
  doctor: Pick<Doctor, 'report' | 'look'>;
}

export type Page = AnyPage<ConsoleDeps>;
export type Action = AnyAction<ConsoleDeps>;
