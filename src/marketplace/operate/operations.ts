import type { Operation } from '../../operator-kit/operation.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { operatorKeysView } from '../../operator-kit/views/keys.ts';
import type { LossCapOptions } from '../model/options.ts';
import { acceptProviderLosses, bookCredit, cleanUpLost, resendMail } from './actions.ts';
import type { OrderDeps } from './orders.ts';
import { deleteVolume, restartDeployment, stopDeployment, terminateDeployment } from './orders.ts';
import { pauseSales, resumeSales, salesPausesView } from './sales.ts';
import { restoreTeam, restoreUser, suspendTeam, suspendUser } from './suspensions.ts';
import { billView, booksView } from './views/books.ts';
import { deploymentsView, deploymentView } from './views/deployments.ts';
import { mailsView } from './views/mails.ts';
import { type KnownProviders, providersView } from './views/providers.ts';
import { monthView, statementView } from './views/statements.ts';
import { statusView } from './views/status.ts';
import { teamsView, teamView } from './views/teams.ts';

export interface OperationDeps extends OrderDeps {
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

/** The type of each of {@link operations}: the declarations of the package cannot have a tuple of this length. */
export type AnyOperation =
  | typeof statusView
  | typeof providersView
  | typeof deploymentsView
  | typeof deploymentView
  | typeof teamsView
  | typeof teamView
  | typeof mailsView
  | typeof booksView
  | typeof billView
  | typeof auditView
  | ReturnType<typeof operatorKeysView>
  | typeof bookCredit
  | typeof acceptProviderLosses
  | typeof cleanUpLost
  | typeof resendMail
  | typeof suspendUser
  | typeof restoreUser
  | typeof suspendTeam
  | typeof restoreTeam
  | typeof terminateDeployment
  | typeof stopDeployment
  | typeof restartDeployment
  | typeof deleteVolume
  | typeof statementView
  | typeof monthView
  | typeof salesPausesView
  | typeof pauseSales
  | typeof resumeSales;

/** Everything that operators can see and do, in the order of the API's document. */
export const operations: readonly (Operation<OperationDeps> & Pick<AnyOperation, 'name'>)[] = [
  statusView,
  providersView,
  deploymentsView,
  deploymentView,
  teamsView,
  teamView,
  mailsView,
  booksView,
  billView,
  statementView,
  monthView,
  salesPausesView,
  auditView,
  operatorKeysView('berth marketplace operators', {
    tag: 'Views',
    description: 'Create and revoke them on the command line: `berth marketplace operators`.',
  }),
  bookCredit,
  acceptProviderLosses,
  cleanUpLost,
  resendMail,
  suspendUser,
  restoreUser,
  suspendTeam,
  restoreTeam,
  terminateDeployment,
  stopDeployment,
  restartDeployment,
  deleteVolume,
  pauseSales,
  resumeSales,
];
