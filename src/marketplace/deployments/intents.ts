import type { DeploymentStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentIntent, DeploymentRecord } from '../model/deployment-record.ts';
import { isUnsent, newIntent } from '../model/intent.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import { awaitIntent, type IntendedCall } from '../providers/intended-call.ts';
import { assertUnchanging } from '../volumes/intents.ts';

type IntentDeps = Pick<Deps, 'store' | 'clock' | 'options'>;

/** A deployment with the intent that was written into it. */
export type Asked = DeploymentRecord & { action: DeploymentIntent };

/** Dependencies of a stop, a start or a restart. */
export type LifecycleDeps = IntentDeps & Pick<Deps, 'providers'>;

/** The requested calls, as messages name them. */
const verbs = { pause: 'stop', resume: 'start', restart: 'restart' };

/**
 * Writes the owner's intent. The provider's worker sends it.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, CHANGE_IN_PROGRESS, or what `assertPossible` throws for the locked record;
 * then nothing is written
 */
export async function ask(
  { store, clock, options }: IntentDeps,
  caller: Caller,
  id: string,
  kind: DeploymentIntent['kind'],
  assertPossible: (record: DeploymentRecord, tx: Transaction) => void | Promise<void>,
): Promise<Asked> {
  const until = clock.now() + options.lifecycleWaitMs;
  return store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id, 'change');
    await assertUnchanging(tx, record, clock.now(), options);
    await assertPossible(record, tx);
    return writeIntent(tx, record, { kind, by: caller.userId, since: clock.now(), until });
  });
}

/** The deployment must be locked and have no other intent. */
export async function writeIntent(
  tx: Pick<Transaction, 'deployments' | 'signals'>,
  record: DeploymentRecord,
  wanted: Pick<DeploymentIntent, 'kind' | 'by' | 'since' | 'until'>,
): Promise<Asked> {
  const asked = { ...record, action: newIntent(record, wanted) };
  await tx.deployments.update(asked);
  await tx.signals.ask(record.providerId, record.id);
  return { ...asked, revision: record.revision + 1 };
}

/**
 * Waits for the intent as {@link awaitIntent} does.
 * @throws {ApiError} also INVALID_STATUS: the status changed meanwhile
 */
export async function awaitDeployment(
  deps: IntentDeps,
  asked: Asked,
  isDone: (record: DeploymentRecord) => boolean,
): Promise<DeploymentRecord> {
  const { store } = deps;
  return awaitIntent(deps, asked, toCall(asked), {
    isDone,
    read: async () => existing(asked, await store.read.deployments.byId(asked.id)),
    withdraw: () =>
      store.transact(async (tx) => {
        const seen = existing(asked, await tx.deployments.byId(asked.id));
        const isWithdrawn = seen.action?.id === asked.action.id && isUnsent(seen.action);
        if (isWithdrawn) await tx.deployments.update({ ...seen, action: null });
        return { seen, isWithdrawn };
      }),
    goesOn: ({ status }) => {
      if (status === asked.status) return false;
      throw new ApiError('INVALID_STATUS', `The deployment became ${status} in the meantime.`, {
        details: { status },
      });
    },
  });
}

function existing({ id }: Asked, record: DeploymentRecord | null): DeploymentRecord {
  if (record === null) throw new Error(`${id} no longer exists`);
  return record;
}

/** The call of an intent, as errors name it. */
export function toCall({ providerId, action }: Asked): IntendedCall {
  return { providerId, what: verbs[action.kind], thing: 'deployment' };
}

/** @throws {ApiError} ACTION_UNSUPPORTED if there is a reason */
export function assertSupported(unsupportedReason: string | null): void {
  if (unsupportedReason !== null) throw new ApiError('ACTION_UNSUPPORTED', unsupportedReason);
}

/**
 * M: Deployments, rule 1: "Stop works only on a running instance; start only on a stopped one".
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
