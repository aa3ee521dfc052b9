import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader, Transaction } from '../model/store.ts';
import { assertUnchanging } from '../volumes/intents.ts';
import { writeIntent } from './intents.ts';
import { assertCanPause, assertCanRestart } from './lifecycle.ts';
import { endsAt } from './terminate.ts';
import { type TransitionDeps, transition } from './transition.ts';

/**
 * Stops a locked deployment that is running. The intent expires like that of a request: who orders it repeats it.
 * @throws {ApiError} as {@link assertCanPause}, or CHANGE_IN_PROGRESS
 */
export async function orderStop(
  deps: TransitionDeps,
  tx: Transaction,
  record: DeploymentRecord,
  by: string,
): Promise<void> {
  await assertCanOrder(deps, tx, record, 'pause');
  const now = deps.clock.now();
  await writeIntent(tx, record, { kind: 'pause', by, since: now, until: now + deps.options.lifecycleWaitMs });
}

/** @throws {ApiError} ACTION_UNSUPPORTED, INVALID_STATUS, PROVIDER_REFUSED or CHANGE_IN_PROGRESS */
export async function assertCanOrder(
  { clock, options, providers }: Pick<TransitionDeps, 'clock' | 'options' | 'providers'>,
  read: Pick<Reader, 'volumes'>,
  record: DeploymentRecord,
  kind: 'pause' | 'restart',
): Promise<void> {
  if (kind === 'pause') assertCanPause(providers, record);
  else assertCanRestart(providers, record);
  await assertUnchanging(read, record, clock.now(), options);
}

/** Terminates a locked deployment that is running or stopped, without a minimum runtime. */
export async function orderEnd(
  deps: TransitionDeps,
  tx: Transaction,
  record: DeploymentRecord,
): Promise<DeploymentRecord> {
  const at = endsAt(deps.providers, record, deps.clock.now());
  return transition(deps, tx, record, { to: 'terminated', at });
}
