import type { Page as AnyPage, ConsoleBase } from '../../operator-kit/console/deps.ts';
import type { OperationDeps } from '../operate/operations.ts';

/** The state of one platform in this process. */
export interface PlatformState {
  driver: { manifest: { name: string } };
  health: { isUp: boolean; isSuspect: boolean; isTaken: boolean };
  losses: { held: number };
}

export interface ConsoleDeps extends ConsoleBase, OperationDeps {
  store: OperationDeps['store'];
  /** The configured platforms by name. */
  states: ReadonlyMap<string, PlatformState>;
}

export type Page = AnyPage<ConsoleDeps>;
