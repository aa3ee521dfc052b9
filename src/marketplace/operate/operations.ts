import { type RouteDeps, testAlarmRoute } from '../../operator-kit/alarms/operations.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { operatorKeysView } from '../../operator-kit/views/keys.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { LossCapOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import { acceptProviderLosses, bookCredit, cleanUpLost, resendMail } from './actions.ts';
import { acknowledgeAlarms, alarmsView, endedAlarmsView } from './alarms.ts';
import { billView, booksView } from './views/books.ts';
import { deploymentsView, deploymentView } from './views/deployments.ts';
import { mailsView } from './views/mails.ts';
import { type KnownProviders, providersView } from './views/providers.ts';
import { statusView } from './views/status.ts';
import { teamsView, teamView } from './views/teams.ts';
import { timeline } from './views/timeline.ts';

export interface OperationDeps extends RouteDeps {
  store: Store;
  clock: Clock;
  random: Random;
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

/** The type of each of {@link operations}: the declarations of the package cannot have a tuple of this length. */
export type AnyOperation =
  | typeof statusView
  | typeof timeline
  | typeof alarmsView
  | typeof endedAlarmsView
  | typeof acknowledgeAlarms
  | typeof testAlarmRoute
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
  | typeof resendMail;

/** Everything that operators can see and do, in the order of the API's document. */
export const operations: readonly (Operation<OperationDeps> & Pick<AnyOperation, 'name'>)[] = [
  statusView,
  timeline,
  alarmsView,
  endedAlarmsView,
  acknowledgeAlarms,
  testAlarmRoute,
  providersView,
  deploymentsView,
  deploymentView,
  teamsView,
  teamView,
  mailsView,
  booksView,
  billView,
  auditView,
  operatorKeysView('berth marketplace operators', {
    tag: 'Views',
    description: 'Create and revoke them on the command line: `berth marketplace operators`.',
  }),
  bookCredit,
  acceptProviderLosses,
  cleanUpLost,
  resendMail,
];
