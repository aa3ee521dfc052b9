import { type RouteDeps, testAlarmRoute } from '../../operator-kit/alarms/operations.ts';
import type { Actor } from '../../operator-kit/model.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { operatorKeysView } from '../../operator-kit/views/keys.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Supply } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Store } from '../model/store.ts';
import type { LossCapOptions } from '../platform/options.ts';
import { createAccount, createKey, revokeKey, setPassword } from './actions/accounts.ts';
import { deleteAccountAction } from './actions/close-account.ts';
import { cancelMaintenance, cordon, cordonsView, planMaintenance, uncordon } from './actions/cordons.ts';
import { drain } from './actions/drain.ts';
import { destroyInstance, releaseInstance, retryInstance } from './actions/instances.ts';
import { acceptLosses, lossesView } from './actions/losses.ts';
import { decideOrphan } from './actions/orphans.ts';
import { type Reloaded, reload } from './actions/reload.ts';
import { acknowledgeAlarms, alarmsView, endedAlarmsView } from './alarms.ts';
import { accountsView, keysView } from './views/accounts.ts';
import { capacityView } from './views/capacity.ts';
import { instancesView, instanceView } from './views/instances.ts';
import { orphansView } from './views/orphans.ts';
import { type PlatformFacts, platformsView } from './views/platforms.ts';
import { statusView } from './views/status.ts';
import { timeline } from './views/timeline.ts';
import { workView } from './views/work.ts';

/** Dependencies of the views and actions. Each takes only those that it uses. */
export interface OperationDeps extends RouteDeps {
  store: Store;
  clock: Clock;
  random: Random;
  catalog: Catalog;
  supply: Supply;
  /** The platforms of this server, by name. */
  platforms: ReadonlyMap<string, PlatformFacts>;
  /** Reloads the catalog of this server. @throws {Fatal} */
  reload: (actor: Actor) => Promise<Reloaded>;
  /** How many instances may end as lost. */
  maxLosses: LossCapOptions;
}

/** The type of each of {@link operations}: the declarations of the package cannot have a tuple of this length. */
export type AnyOperation =
  | typeof statusView
  | typeof platformsView
  | typeof capacityView
  | typeof workView
  | typeof timeline
  | typeof alarmsView
  | typeof endedAlarmsView
  | typeof acknowledgeAlarms
  | typeof testAlarmRoute
  | typeof orphansView
  | typeof auditView
  | typeof instancesView
  | typeof instanceView
  | typeof accountsView
  | typeof createAccount
  | typeof deleteAccountAction
  | typeof keysView
  | typeof createKey
  | typeof revokeKey
  | ReturnType<typeof operatorKeysView>
  | typeof cordonsView
  | typeof cordon
  | typeof uncordon
  | typeof drain
  | typeof planMaintenance
  | typeof cancelMaintenance
  | typeof reload
  | typeof retryInstance
  | typeof releaseInstance
  | typeof decideOrphan
  | typeof destroyInstance
  | typeof lossesView
  | typeof acceptLosses;

/** Everything that operators can see and do, in the order of the API's document. */
export const operations: readonly (Operation<OperationDeps> & Pick<AnyOperation, 'name'>)[] = [
  statusView,
  platformsView,
  capacityView,
  workView,
  timeline,
  alarmsView,
  endedAlarmsView,
  acknowledgeAlarms,
  testAlarmRoute,
  orphansView,
  auditView,
  instancesView,
  instanceView,
  accountsView,
  createAccount,
  deleteAccountAction,
  keysView,
  createKey,
  revokeKey,
  operatorKeysView('berth operators', {
    tag: 'Accounts',
    description: 'Oldest first. Create and revoke them on the command line: `berth operators`.',
  }),
  cordonsView,
  cordon,
  uncordon,
  drain,
  planMaintenance,
  cancelMaintenance,
  reload,
  retryInstance,
  releaseInstance,
  decideOrphan,
  destroyInstance,
  lossesView,
  acceptLosses,
];

/** What an operator of production does on the command line only. The operator API of a sandbox has it too. */
export const commands = [setPassword] as const;
