import { fenced, type LeaseRecord } from '../../work/lease.ts';
import { type Job, LeasedJob, type LeasedJobDeps } from '../../work/leased-job.ts';
import type { Store } from './store.ts';

/** The store for the holder of a lease: each of its transactions is {@link fenced}. */
export function fencedStore(store: Store, lease: LeaseRecord): Store {
  return { ...store, transact: (body) => store.transact(fenced(lease, body)) };
}

/** A job of the marketplace that runs in the process that holds its lease. */
export function leasedJob(deps: Omit<LeasedJobDeps<Store>, 'fence'>, job: Job<Store>): LeasedJob<Store> {
  return new LeasedJob({ ...deps, fence: fencedStore }, job);
}
