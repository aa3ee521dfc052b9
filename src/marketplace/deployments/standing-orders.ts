import { LeaseLost } from '../../work/lease.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { leasedJob } from '../model/fenced-store.ts';
import type { Store, Transaction } from '../model/store.ts';
import { type Suspendable, suspendedNow } from '../teams/suspend.ts';
import { endRetired } from './end-retired.ts';
import { orderEnd, orderStop } from './orders.ts';
import type { TransitionDeps } from './transition.ts';

const EVERY_MS = 30_000;

/**
 * The job that carries out what an operator has ordered for as long as it is ordered: it stops or ends the deployments of
 * suspended users and teams, also those that run only later, and ends what is left at retired providers.
 */
export function createStandingOrders(deps: Deps, retired: readonly string[]): LeasedJob<Store> {
  const work = async (store: Store) => {
    await enforceSuspensions({ ...deps, store });
    await endRetired({ ...deps, store }, retired);
  };
  return leasedJob(deps, { name: 'standing-orders', everyMs: EVERY_MS, work });
}

async function enforceSuspensions(deps: Deps): Promise<void> {
  for (const suspended of await suspendedNow(deps.store.read)) {
    if (suspended.suspension === null || suspended.suspension.running === 'keep') continue;
    const statuses = (['running', 'stopped'] as const).slice(
      0,
      suspended.suspension.running === 'end' ? 2 : 1,
    );
    for (const deployment of await deps.store.read.deployments.list({ ...ownerOf(suspended), statuses }))
      await enforce(deps, deployment);
  }
}

function ownerOf({ kind, id }: Suspendable): { userId: string } | { teamIds: string[] } {
  return kind === 'user' ? { userId: id } : { teamIds: [id] };
}

async function enforce(deps: Deps, { id, ...named }: DeploymentRecord): Promise<void> {
  const { store, log } = deps;
  try {
    await store.transact((tx) => orderFor(deps, tx, id));
  } catch (err) {
    if (err instanceof LeaseLost) throw err;
    // It cannot be stopped, or another change is in progress.
    if (err instanceof ApiError) return;
    log.error(
      { err, ...logNames({ id, ...named }) },
      'could not stop or end a deployment of a suspended user or team: it will be retried',
    );
  }
}

/** Reads the suspension again: it may have ended. The rows of the user and the team are not locked: see `TeamReader`. */
async function orderFor(deps: TransitionDeps, tx: Transaction, id: string): Promise<void> {
  const record = await tx.deployments.byId(id);
  if (record === null || (record.status !== 'running' && record.status !== 'stopped')) return;
  const standing = await tx.teams.standing(record.teamId, record.userId);
  const orders = [standing?.userSuspension, standing?.teamSuspension].flatMap((one) => one ?? []);
  if (orders.some(({ running }) => running === 'end')) return void (await orderEnd(deps, tx, record));
  const stop = orders.find(({ running }) => running === 'stop');
  if (stop !== undefined && record.status === 'running') await orderStop(deps, tx, record, stop.by);
}
