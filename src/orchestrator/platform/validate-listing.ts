import type { Listing, ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from './context.ts';
import { changedBefore, type ExpectedMachines, isExpected } from './expected-machines.ts';
import type { Judge } from './shared-listing.ts';

type Deps = Pick<ReconcileContext, 'store' | 'clock' | 'log' | 'health' | 'options' | 'driver'>;

const ROWS_BETWEEN_PAUSES = 5_000;
/** Fewer than this many that are missing, unless they are all, are taken for what they look like. */
const LEAST_SUSPECT = 3;
/** How long missing volumes are looked for before they are taken for gone, in milliseconds. */
const MAX_VOLUMES_SUSPECT_MS = 60 * 60_000;
const MISSING_VOLUMES =
  'the platform lacks too many volumes that it should have: no deletion is believed for an hour, ' +
  'or until `berth losses accept` says that they are really gone';

/**
 * Whether so much is missing that the platform is doubted, not its machines: a revoked key, another project or a
 * page that got lost look exactly like that. `share` is from 0 to 1.
 */
export function isSuspect({ expected, missing }: { expected: number; missing: number }, share: number) {
  if (missing >= 2 && missing === expected) return true;
  return missing >= LEAST_SUSPECT && missing > share * expected;
}

/** Holds a listing of machines against the rows, and tells the platform's health what comes of it. */
export function judgeMachines(deps: Deps, expected: ExpectedMachines): Judge<ObservedMachine> {
  return async (listing, begunAt) => {
    const { health, options, driver } = deps;
    if (listing.answer === 'unknown') {
      await health.reportProblem({ kind: 'down', problem: listing.reason }, begunAt);
      return false;
    }
    await expected.refresh();
    // What is younger may be missing in the listing of an honest platform too.
    const settledBy = begunAt - driver.manifest.createVisibleWithinMs;
    const result = await count(deps, expected, new Set(listing.items.map(({ ref }) => ref)), settledBy);
    if (isSuspect(result, options.suspectShare) && !(await areLossesAccepted(deps))) {
      const problem = `its listing lacks ${result.missing} of ${result.expected} machines that it should have`;
      await health.reportProblem({ kind: 'suspect', problem }, begunAt);
      return false;
    }
    await health.answered(begunAt);
    return health.isUp;
  };
}

/** A row that changed since is not held against the listing. */
async function count(
  deps: Pick<Deps, 'clock' | 'options'>,
  expected: ExpectedMachines,
  listed: ReadonlySet<OwnerRef>,
  settledBy: number,
): Promise<{ expected: number; missing: number }> {
  const counts = { expected: 0, missing: 0 };
  let seen = 0;
  for (const [ref, expectation] of expected.entries()) {
    if (++seen % ROWS_BETWEEN_PAUSES === 0) await new Promise((resolve) => setImmediate(resolve));
    if (!isExpected(expectation) || !changedBefore(expectation.since, settledBy, deps)) continue;
    counts.expected++;
    if (!listed.has(ref)) counts.missing++;
  }
  return counts;
}

/** Whether the operator has said that what is missing is lost, for now. */
async function areLossesAccepted({ store, clock }: Pick<Deps, 'store' | 'clock'>): Promise<boolean> {
  const until = await store.read.marks.get('losses_accepted_until');
  return until !== null && clock.now() < until;
}

/**
 * Holds a listing of volumes against the one before: what nobody deletes stays. A volume decides nothing about the
 * platform's health; one that cannot be believed only proves nothing. Volumes that somebody removed by hand never come
 * back, so the doubt ends by itself: a volume that was taken for gone and is listed later is deleted again.
 */
export function judgeVolumes(deps: Deps): Judge<ObservedVolume> {
  let known: OwnerRef[] = [];
  let suspectSince: number | null | undefined;
  return async (listing, begunAt) => {
    const { log, options, health } = deps;
    const result = await countVolumes(deps, listing, known);
    if (result === undefined) return false;
    const isLong = typeof suspectSince === 'number' && begunAt - suspectSince >= MAX_VOLUMES_SUSPECT_MS;
    if (isSuspect(result, options.suspectShare) && !isLong && !(await areLossesAccepted(deps))) {
      if (typeof suspectSince === 'number') return false;
      await markVolumesSuspect(deps, begunAt);
      suspectSince = begunAt;
      log.error(result, MISSING_VOLUMES);
      return false;
    }
    if (!health.isUp) return false;
    if (suspectSince !== null) await markVolumesSuspect(deps, null);
    suspectSince = null;
    if (listing.answer === 'listed') known = listing.items.map(({ ref }) => ref);
    return true;
  };
}

/** Also what an earlier process said is over when this one has seen otherwise. */
async function markVolumesSuspect({ store }: Pick<Deps, 'store'>, since: number | null): Promise<void> {
  await store.transact(async (tx) => {
    if (since === null) await tx.marks.remove('volumes_doubted_since');
    else await tx.marks.put('volumes_doubted_since', since);
  });
}

async function countVolumes(
  { store }: { store: Store },
  listing: Listing<ObservedVolume>,
  known: readonly OwnerRef[],
): Promise<{ expected: number; missing: number } | undefined> {
  if (listing.answer === 'unknown') return undefined;
  const listed = new Set(listing.items.map(({ ref }) => ref));
  const counts = { expected: known.length, missing: 0 };
  for (const ref of known) {
    if (listed.has(ref)) continue;
    const row = await store.read.volumes.byOwnerRef(ref);
    if (row === null || row.status === 'DELETING' || row.status === 'ERROR') counts.expected--;
    else counts.missing++;
  }
  return counts;
}
