import type { DeploymentStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Action, assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Store, Transaction } from '../model/store.ts';

/** A deployment of which a request changes something at the provider. */
export type BegunDeployment = DeploymentRecord & { action: Action; providerInstanceId: string };

/**
 * Writes that a change has begun, before the provider is asked for it, so that no other begins meanwhile and a poll
 * knows what to expect. `assertPossible` sees the deployment locked, as it is.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, CHANGE_IN_PROGRESS, or what `assertPossible` throws; then nothing was written
 */
export async function beginAction(
  { store, clock, options }: Pick<Deps, 'store' | 'clock' | 'options'>,
  caller: Caller,
  id: string,
  { kind, isSent }: Pick<Action, 'kind' | 'isSent'>,
  assertPossible: (record: DeploymentRecord, tx: Transaction) => void | Promise<void>,
): Promise<BegunDeployment> {
  return store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id);
    const now = clock.now();
    assertNoAction(record, now, options);
    await assertPossible(record, tx);
    const { providerInstanceId } = record;
    if (providerInstanceId === null)
      throw new Error(`${id} is ${record.status} without an instance at ${record.providerId}`);
    const action = { kind, since: now, isSent };
    await tx.deployments.update({ ...record, action });
    return { ...record, action, providerInstanceId };
  });
}

/** Whether the change that a request began is the one that a record still has. */
export function isUnderWay(record: DeploymentRecord, { action }: BegunDeployment): boolean {
  return record.action?.kind === action.kind && record.action.since === action.since;
}

/** The provider has taken the change, or may have: a poll ends it from here on. Returns the deployment as it is now. */
export async function markSent(store: Store, begun: BegunDeployment): Promise<DeploymentRecord> {
  return writeAction(store, begun, { ...begun.action, isSent: true });
}

/** The provider has not taken the change, or it is over. Returns the deployment as it is now. */
export async function endAction(store: Store, begun: BegunDeployment): Promise<DeploymentRecord> {
  return writeAction(store, begun, null);
}

async function writeAction(
  store: Store,
  begun: BegunDeployment,
  action: Action | null,
): Promise<DeploymentRecord> {
  return store.transact(async (tx) => {
    const record = await tx.deployments.byId(begun.id);
    if (record === null) throw new Error(`${begun.id} is not there any more`);
    if (!isUnderWay(record, begun)) return record;
    const written = { ...record, action };
    await tx.deployments.update(written);
    return written;
  });
}

/**
 * M: Deployments, rule 1: "Stop works only on a running instance; start only on a stopped one; restart only on a running
 * one".
 *
 * @throws {ApiError} INVALID_STATUS
 */
export function assertStatus(
  { status }: DeploymentRecord,
  needed: DeploymentStatus,
  verb: 'stopped' | 'started' | 'restarted',
): void {
  if (status === needed) return;
  throw new ApiError('INVALID_STATUS', `Only a ${needed} deployment can be ${verb}; this one is ${status}.`, {
    details: { status },
  });
}
