import { within } from '../../../operators/audit.ts';
import type { Clock } from '../../../ports/clock.ts';
import { destroyInstance } from '../../instances/destroy.ts';
import type { AccountRecord } from '../../model/records.ts';
import type { Store, Transaction } from '../../model/store.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { ActionRefused } from './refused.ts';

interface Deps {
  store: Store;
  clock: Clock;
}

/** How an account that was closed stands. */
export interface Closed {
  /** Those that are being deleted. */
  instances: number;
  volumes: number;
  /** Whether its row is gone. */
  isDeleted: boolean;
}

/**
 * Ends each key, the password and the tokens of an account: it can do nothing until it is given a new one. A key in
 * BERTH_API_KEY is not its own, and stays.
 *
 * @throws {ActionRefused} while it has instances, unless these are deleted with it.
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
 * Deletes an account. With `drain` its instances are deleted first, then its volumes, each by its own work: it is asked for
 * again until they are gone. As long as the rows of what it had are kept, so is its own: a 404 is told to their owner alone.
 *
 * @throws {ActionRefused} while it has instances or volumes, unless these are deleted with it.
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
    await tx.credentials.endAccess(account.id, deps.clock.now());
    const isDeleted = instances + volumes === 0 && (await tx.credentials.deleteAccount(account.id));
    return { instances, volumes, isDeleted };
  });
}

/** Nobody adds to what it has meanwhile. */
async function lockAccount(tx: Transaction, name: string): Promise<AccountRecord> {
  const account = await tx.credentials.accountByName(name);
  if (account === null)
    throw new ActionRefused(`There is no account "${name}": see \`berth accounts list\`.`, 'not_found');
  await tx.accountUse.lock(account.id);
  return account;
}

/** Has its instances deleted; returns how many there are. */
async function deleteInstances(
  { store, clock }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  drain: boolean,
): Promise<number> {
  const live = await tx.instances.list({ accountId });
  if (live.length > 0 && !drain)
    throw new ActionRefused(
      `Account "${name}" has ${live.length} instances: delete them first, or give --drain to have them deleted.`,
    );
  // In the order in which rows are locked.
  for (const id of live.map((record) => record.id).sort())
    await destroyInstance({ store: within(store, tx), clock }, accountId, id);
  return live.length;
}

/** Has its volumes deleted, unless instances may hold them still; returns how many there are. */
async function deleteVolumes(
  { store, clock }: Deps,
  tx: Transaction,
  { id: accountId, name }: AccountRecord,
  { drain, areHeld }: { drain: boolean; areHeld: boolean },
): Promise<number> {
  const live = await tx.volumes.liveIdsOf(accountId);
  if (live.length > 0 && !drain)
    throw new ActionRefused(
      `Account "${name}" has ${live.length} volumes: delete them first, or give --drain to have them deleted.`,
    );
  if (!areHeld) for (const id of live) await deleteVolume({ store: within(store, tx), clock }, accountId, id);
  return live.length;
}
