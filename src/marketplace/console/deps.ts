import type { Page as AnyPage, ConsoleBase } from '../../operator-kit/console/deps.ts';
import type { OperationDeps } from '../operate/operations.ts';

export interface ConsoleDeps extends ConsoleBase, OperationDeps {
  store: OperationDeps['store'];
}

export type Page = AnyPage<ConsoleDeps>;
