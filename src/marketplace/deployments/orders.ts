import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Transaction } from '../model/store.ts';
import { assertUnchanging } from '../volumes/intents.ts';
import { writeIntent } from './intents.ts';
import { assertCanPause } from './lifecycle.ts';
import { endsAt } from './terminate.ts';
import { type TransitionDeps, transition } from './transition.ts';

/**
 * Stops a locked deployment that is running. The intent expires like that of a request: who orders it repeats it.
 * @throws {ApiError} as {@link assertCanPause}, or CHANGE_IN_PROGRESS
 */
export async function orderStop(
  { clock, options, providers }: TransitionDeps,
  tx: Transaction,
  record: DeploymentRecord,
  by: string,
): Promise<void> {
  assertCanPause(providers, record);
  const now = clock.now();
  await assertUnchanging(tx, record, now, options);
  const until = now + options.lifecycleWaitMs;
  await writeIntent(tx, record, { kind: 'pause', by, since: now, until });
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
