import { alarmRoutesView, type RouteDeps, testAlarmRoute } from '../../operator-kit/alarms/operations.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { operatorKeyActions, operatorKeysView } from '../../operator-kit/views/keys.ts';
import type { LossCapOptions } from '../model/options.ts';
import { acceptProviderLosses, bookCredit, cleanUpLost, resendMail } from './actions.ts';
import { acknowledgeAlarms, alarmsView, endedAlarmsView } from './alarms.ts';
import { peopleOperations } from './commands.ts';
import { figuresView } from './figures/figures.ts';
import type { OrderDeps } from './orders.ts';
import { deleteVolume, restartDeployment, stopDeployment, terminateDeployment } from './orders.ts';
import { pauseSales, resumeSales, salesPausesView } from './sales.ts';
import { restoreTeam, restoreUser, suspendTeam, suspendUser } from './suspensions.ts';
import { billView, booksView } from './views/books.ts';
import { deploymentsView, deploymentView } from './views/deployments.ts';
import { lossesView } from './views/losses.ts';
import { mailsView } from './views/mails.ts';
import { type KnownProviders, providersView } from './views/providers.ts';
import { monthView, statementView } from './views/statements.ts';
import { statusView } from './views/status.ts';
import { teamsView, teamView } from './views/teams.ts';
import { timeline } from './views/timeline.ts';

export interface OperationDeps extends OrderDeps, RouteDeps {
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

export const operatorKeys = operatorKeysView('berth marketplace operators', {
  tag: 'Views',
  description: 'Oldest first.',
});
const keyActions = operatorKeyActions('berth marketplace operators', 'Views');

/** The type of each of {@link operations}: the declarations of the package cannot have a tuple of this length. */
export type AnyOperation =
  | typeof statusView
  | typeof timeline
  | typeof alarmsView
  | typeof endedAlarmsView
  | typeof acknowledgeAlarms
  | typeof alarmRoutesView
  | typeof testAlarmRoute
  | typeof providersView
  | typeof deploymentsView
  | typeof deploymentView
  | typeof teamsView
  | typeof teamView
  | typeof mailsView
  | typeof booksView
  | typeof lossesView
  | typeof billView
  | typeof figuresView
  | typeof auditView
  | typeof operatorKeys
  | typeof keyActions.create
  | typeof keyActions.revoke
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
  | typeof resumeSales
  | (typeof peopleOperations)[number];

/** Everything that operators can see and do, in the order of the API's document. */
export const operations: readonly (Operation<OperationDeps> & Pick<AnyOperation, 'name'>)[] = [
  statusView,
  timeline,
  alarmsView,
  endedAlarmsView,
  acknowledgeAlarms,
  alarmRoutesView,
  testAlarmRoute,
  providersView,
  deploymentsView,
  deploymentView,
  teamsView,
  teamView,
  mailsView,
  booksView,
  billView,
  lossesView,
  statementView,
  monthView,
  salesPausesView,
  figuresView,
  auditView,
  operatorKeys,
  keyActions.create,
  keyActions.revoke,
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
  ...peopleOperations,
];
