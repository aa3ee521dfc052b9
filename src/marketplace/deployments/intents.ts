import type { DeploymentStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentIntent, type DeploymentRecord } from '../model/deployment-record.ts';
import { fromRefusal, isUnsent, newIntent } from '../model/intent.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import { whenWritten } from '../model/waiting.ts';
import { type IntendedCall, notReached, slowError } from '../providers/intent-errors.ts';

type IntentDeps = Pick<Deps, 'store' | 'clock' | 'options'>;

/** A deployment with the intent that was written into it. */
export type Asked = DeploymentRecord & { action: DeploymentIntent };

/** Dependencies of a stop, a start or a restart. */
export type LifecycleDeps = IntentDeps & Pick<Deps, 'providers'>;

type Kind = Exclude<DeploymentIntent['kind'], 'volume'>;

/** The requested calls, as messages name them. */
const verbs: Readonly<Record<Kind, string>> = { pause: 'stop', resume: 'start', restart: 'restart' };

function verbOf({ kind }: Pick<DeploymentIntent, 'kind'>): string {
  return kind === 'volume' ? 'change' : verbs[kind];
}

/**
 * Writes the owner's intent. The provider's worker sends it.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, CHANGE_IN_PROGRESS, or what `assertPossible` throws for the locked record;
 * then nothing is written
 */
export async function ask(
  { store, clock, options }: IntentDeps,
  caller: Caller,
  id: string,
  kind: Kind,
  assertPossible: (record: DeploymentRecord, tx: Transaction) => void | Promise<void>,
): Promise<Asked> {
  const until = clock.now() + options.lifecycleWaitMs;
  return store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id);
    assertNoAction(record, clock.now(), options);
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
 * Waits until the intent is over. An intent that was not sent by its deadline is withdrawn.
 * @throws {ApiError} the provider's refusal; PROVIDER_REFUSED: not sent; INVALID_STATUS: the status changed meanwhile;
 * PROVIDER_SLOW (M: 504): sent, and the row does not show its outcome
 */
export async function awaitIntent(
  deps: IntentDeps,
  asked: Asked,
  isDone: (record: DeploymentRecord) => boolean,
): Promise<DeploymentRecord> {
  const { store, clock } = deps;
  const read = async () => outcomeOf(await store.read.deployments.byId(asked.id), asked, isDone);
  const until = asked.action.until ?? clock.now();
  const done = await whenWritten(deps, asked.id, until, read, { isJustWritten: true });
  if (done !== null) return done;
  const { record, isWithdrawn } = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(asked.id);
    const isWithdrawn = record?.action?.id === asked.action.id && isUnsent(record.action);
    if (record !== null && isWithdrawn) await tx.deployments.update({ ...record, action: null });
    return { record, isWithdrawn };
  });
  if (isWithdrawn) throw notReached(toCall(asked));
  const late = outcomeOf(record, asked, isDone);
  if (late !== null) return late;
  throw slowError(toCall(asked), record?.action?.answer ?? null);
}

/** The call of an intent, as errors name it. */
export function toCall({ providerId, action }: Asked): IntendedCall {
  return { providerId, what: verbOf(action), thing: 'deployment' };
}

/**
 * Returns null while the intent is in progress. An intent missing from the row proves neither success nor refusal.
 * @throws {ApiError} if the intent ended without success, or if its outcome is unknown
 */
function outcomeOf(
  record: DeploymentRecord | null,
  asked: Asked,
  isDone: (record: DeploymentRecord) => boolean,
): DeploymentRecord | null {
  if (record === null) throw new Error(`${asked.id} no longer exists`);
  const { status, refusal } = record;
  if (refusal?.id === asked.action.id) throw fromRefusal(refusal);
  if (isDone(record)) return record;
  if (record.action?.id === asked.action.id) return null;
  if (status !== asked.status)
    throw new ApiError('INVALID_STATUS', `The deployment became ${status} in the meantime.`, {
      details: { status },
    });
  throw slowError(toCall(asked), 'unknown');
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
