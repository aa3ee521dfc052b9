import { counted } from '../../../contract/counted.ts';
import { audited, auditedLookup, within } from '../../../operators/audit.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import { DEFAULT_ACCOUNT } from '../../accounts/accounts.ts';
import { askedBy } from '../../accounts/asked-by.ts';
import { destroyInstance } from '../../instances/destroy.ts';
import type { AccountRecord } from '../../model/records.ts';
import type { Store, Transaction } from '../../model/store.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { findAccount } from '../views/accounts.ts';
import { toRequestedBy } from './instances.ts';
import { ActionRefused } from './refused.ts';

interface Deps {
  store: Store;
  clock: Clock;
  /** The operator who closes it. */
  by?: string;
}

/** The state of a closed account. */
interface Closed {
  /** How many instances, and then volumes, are being deleted. */
  instances: number;
  volumes: number;
  /** Whether the row of the account is deleted. */
  isDeleted: boolean;
}

/** How an account is closed: until it gets a new key, or for good. */
export type Closing = 'disable' | 'delete';

export interface ClosingOrder {
  /** The name or the id of the account. */
  account: string;
  closing: Closing;
  /**
   * Whether its instances, and with `delete` its volumes, are deleted. If false and it has any, the order is refused.
   */
  drain: boolean;
  /** False: a dry run that only returns the effect. */
  isDone: boolean;
}

/** The effect of closing an account, planned or done. */
export interface ClosingPlan extends Closed {
  account: string;
  id: string;
  /** The effect as a sentence. */
  effect: string;
  isDone: boolean;
}

/** Closes an account for an operator. @throws {ActionRefused} */
export async function closeAccount(
  deps: Deps,
  actor: Actor,
  { account: nameOrId, closing, drain, isDone }: ClosingOrder,
): Promise<ClosingPlan> {
  const { read } = deps.store;
  const find = async (): Promise<AccountRecord> => {
    const found = await findAccount(read, nameOrId);
    if (found === null) throw noAccount(nameOrId);
    if (closing === 'disable' && found.closedAt !== null)
      throw new ActionRefused(`Account "${found.name}" was permanently deleted and cannot be disabled.`);
    return found;
  };
  const action = { action: `account.${closing}`, subject: nameOrId, detail: { drain } };
  const { id, name } = await (isDone ? auditedLookup(deps, actor, action, find) : find());
  if (!isDone) {
    const instances = await read.instances.countFound({ accountId: id });
    const volumes = closing === 'delete' ? (await read.volumes.liveIdsOf(id)).length : 0;
    assertDrained(name, { instances, volumes }, drain);
    const effect = effectOf(closing, { instances, volumes });
    return { account: name, id, instances, volumes, isDeleted: false, effect, isDone };
  }
  const closed = await audited(deps, actor, { ...action, subject: name }, async (store) => {
    const inside = { ...deps, by: actor.name, store: askedBy(store, toRequestedBy(actor)) };
    if (closing === 'delete') return deleteAccount(inside, name, { drain });
    return { ...(await disableAccount(inside, name, { drain })), volumes: 0, isDeleted: false };
  });
  return { account: name, id, ...closed, effect: effectOf(closing, closed), isDone };
}

function effectOf(closing: Closing, { instances, volumes }: Pick<Closed, 'instances' | 'volumes'>): string {
  const access = 'its keys, password and tokens stop working';
  const machines =
    instances > 0 ? `, and its ${counted(instances, 'instance')} will be deleted with all disks` : '';
  if (closing === 'disable') return `${access}, so it has no access until it gets a new one${machines}`;
  const storage = volumes > 0 ? `, its ${counted(volumes, 'volume')} after that` : '';
  return `${access}${machines}${storage}; it cannot get a new key, and its row and its name are deleted once the rows of all its resources are gone`;
}

/**
 * Ends each key, the password and the tokens of an account. It has no access until it gets a new key. A key in
 * BERTH_API_KEY belongs to the configuration, and stays.
 *
 * @throws {ActionRefused} if it has instances and `drain` is false
 */
export async function disableAccount(
  deps: Deps,
  name: string,
  { drain }: { drain: boolean },
): Promise<Pick<Closed, 'instances'>> {
  return deps.store.transact(async (tx) => {
    const account = await lockAccount(tx, name);
    const instances = await deleteInstances(deps, tx, account, drain);
    await tx.credentials.endAccess(account.id, deps.clock.now());
    return { instances };
  });
}

/**
 * Closes an account at once and for good. With `drain` it deletes its instances, or its volumes if it has no instances:
 * repeat the call until both are gone. The account's row stays while rows of its resources exist, since a 404 is sent
 * only to their owner. Housekeeping deletes it then.
 *
 * @throws {ActionRefused} if it has instances or volumes and `drain` is false
 */
export async function deleteAccount(
  deps: Deps,
  name: string,
  { drain }: { drain: boolean },
): Promise<Closed> {
  return deps.store.transact(async (tx) => {
    const account = await lockAccount(tx, name);
    const instances = await deleteInstances(deps, tx, account, drain);
    const volumes = await deleteVolumes(deps, tx, account, { drain, areHeld: instances > 0 });
    const now = deps.clock.now();
    await tx.credentials.endAccess(account.id, now);
    await tx.credentials.closeAccount(account.id, now);
    if (account.name === DEFAULT_ACCOUNT) await tx.marks.put('default_account_closed', now);
    const isDeleted = instances + volumes === 0 && (await tx.credentials.deleteAccount(account.id));
    return { instances, volumes, isDeleted };
  });
}

function noAccount(nameOrId: string): ActionRefused {
  return new ActionRefused(`There is no account "${nameOrId}": see \`berth accounts ls\`.`, 'not_found');
}

/** @throws {ActionRefused} if it has resources and `drain` is false */
function assertDrained(
  name: string,
  { instances, volumes }: Pick<Closed, 'instances' | 'volumes'>,
  drain: boolean,
): void {
  if (drain || instances + volumes === 0) return;
  const what = instances > 0 ? counted(instances, 'instance') : counted(volumes, 'volume');
  throw new ActionRefused(
    `Account "${name}" has ${what}: delete them first, or delete them together with the account: \`--drain\`, or "drain": true in the operators' API.`,
  );
}

/** Locks the account, so that it cannot get new resources meanwhile. */
async function lockAccount(tx: Transaction, name: string): Promise<AccountRecord> {
  const account = await tx.credentials.accountByName(name);
  if (account === null) throw noAccount(name);
  await tx.accountUse.lockToClose(account.id);
  return account;
}

/** Deletes its instances. Returns how many there are. */
async function deleteInstances(
  { store, clock, by = 'operator' }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  drain: boolean,
): Promise<number> {
  const live = await tx.instances.list({ accountId });
  assertDrained(name, { instances: live.length, volumes: 0 }, drain);
  // Ordered by id, as rows are locked.
  for (const id of live.map((record) => record.id).sort())
    await destroyInstance({ store: within(store, tx), clock }, accountId, id, { reason: 'operator', by });
  return live.length;
}

/** Deletes its volumes, unless instances may still use them. Returns how many there are. */
async function deleteVolumes(
  { store, clock, by = 'operator' }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  { drain, areHeld }: { drain: boolean; areHeld: boolean },
): Promise<number> {
  const live = await tx.volumes.liveIdsOf(accountId);
  assertDrained(name, { instances: 0, volumes: live.length }, drain);
  if (!areHeld)
    for (const id of live)
      await deleteVolume({ store: within(store, tx), clock }, accountId, id, { reason: 'operator', by });
  return live.length;
}
