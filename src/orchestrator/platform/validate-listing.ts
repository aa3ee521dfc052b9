import { sortNames } from '../../contract/compare-names.ts';
import type { InstanceStatus } from '../../contract/instance.ts';
import { inSlices } from '../../ports/in-slices.ts';
import { markOf } from '../model/marks.ts';
import type { Listing, ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from './context.ts';
import { changedBefore, type ExpectedMachines, isExpected } from './expected-machines.ts';
import { areLossesAccepted, judgeHosts } from './loss-cap.ts';
import { type Hosts, isUnseen, type Judge, toHosts } from './shared-listing.ts';
import type { Seen } from './sightings.ts';

type Missing = Omit<Seen, 'resourceKind' | 'what'>;

type Deps = Pick<
  ReconcileContext,
  'store' | 'platform' | 'clock' | 'log' | 'alarms' | 'health' | 'options' | 'driver' | 'sightings'
>;

/** A listing in which a larger share of the resources is missing is not accepted. */
const SUSPECT_SHARE = 0.5;
/** A listing with fewer missing machines is accepted, unless all machines are missing. */
const LEAST_SUSPECT = 3;
/** How long a listing with too many missing volumes is not trusted, in milliseconds. */
const MAX_VOLUMES_SUSPECT_MS = 60 * 60_000;
const SILENT_HOSTS =
  'some hosts of the platform do not answer: their machines keep their status until they do, and the other hosts stay on sale';
const UNKNOWN_HOST =
  'machines were last seen on a host that the platform no longer has: they keep their status. Put the host back into the ' +
  'configuration, or add its new name; if it is permanently gone, `berth losses accept` ends its instances';
const MISSING_VOLUMES =
  'too many volumes are missing from the platform: none counts as deleted for an hour, ' +
  'or until `berth losses accept` confirms that they are gone. Check that the storage pool is available';

/**
 * Why a listing is probably wrong: too many resources are missing, as after a revoked key, with another project or
 * without one of its pages. `many` means that an operator has to accept the listing. `all`
 * means that the only one or two machines are missing, which is accepted after a time.
 */
export function whySuspect({
  expected,
  missing,
}: {
  expected: number;
  missing: number;
}): 'many' | 'all' | undefined {
  if (missing >= LEAST_SUSPECT && missing > SUSPECT_SHARE * expected) return 'many';
  return missing >= 1 && missing === expected ? 'all' : undefined;
}

/** Compares a listing of machines with the database, and reports the result to the platform's health. */
export function judgeMachines(deps: Deps, expected: ExpectedMachines): Judge<ObservedMachine> {
  let reported = '';
  return async (listing, begunAt) => {
    const { health, driver, log, sightings } = deps;
    if (listing.answer === 'unknown') {
      await health.reportProblem({ kind: 'down', problem: listing.reason }, begunAt);
      return false;
    }
    const hostAnswers = toHosts(listing.hosts);
    const silent = sortNames(hostAnswers.silent).join(', ');
    if (silent !== reported && silent !== '') log.warn({ hosts: silent }, SILENT_HOSTS);
    if (silent !== reported && silent === '') log.info({}, 'every host of the platform answers again');
    reported = silent;
    await expected.refresh();
    const hosts = await judgeHosts(deps, hostAnswers);
    // A younger machine may be missing from a correct listing.
    const settledBy = begunAt - driver.manifest.createVisibleWithinMs;
    const counts = await count(deps, expected, { items: listing.items, hosts }, settledBy);
    const { missing } = counts;
    raiseUnknownHosts(deps, counts.lastSeenOn);
    const why = whySuspect({ expected: counts.expected, missing: missing.length });
    if (why !== 'many')
      await sightings.replace({ resourceKind: 'instance', what: 'missing' }, missing, hosts.silent);
    const hasLasted = why === 'all' && missing.every((one) => hasLastedMissing(deps, one));
    if (why !== undefined && !hasLasted && !(await areLossesAccepted(deps))) {
      const problem = `${missing.length} of ${counts.expected} expected machines are missing from its listing`;
      await health.reportProblem({ kind: 'suspect', problem }, begunAt);
      return false;
    }
    await health.answered(begunAt);
    return health.isUp;
  };
}

/** Counts expected and missing machines. Leaves out rows that changed later, and rows whose host has not answered. */
async function count(
  deps: Pick<Deps, 'clock' | 'options'>,
  expected: ExpectedMachines,
  { items, hosts }: { items: readonly ObservedMachine[]; hosts: Hosts },
  settledBy: number,
): Promise<{ expected: number; missing: readonly Missing[]; lastSeenOn: ReadonlyMap<string, number> }> {
  const listed = await refsOf(items);
  const missing: Missing[] = [];
  let expectedCount = 0;
  const lastSeenOn = new Map<string, number>();
  for await (const slice of inSlices(expected.entries()))
    for (const [ref, expectation] of slice) {
      const isListed = listed.has(ref);
      const isElsewhere = !isListed && isUnseen(hosts, expectation);
      const { host, status } = expectation;
      if (isElsewhere && host !== null && !hosts.silent.has(host) && hasMachine(status))
        lastSeenOn.set(host, (lastSeenOn.get(host) ?? 0) + 1);
      if (isElsewhere || !isExpected(expectation)) continue;
      const answeredAt = expectation.createOpenUntil ?? Number.NEGATIVE_INFINITY;
      if (!changedBefore(Math.max(expectation.since, answeredAt), settledBy, deps)) continue;
      expectedCount++;
      if (!isListed) missing.push({ name: ref, ref, resourceId: expectation.id, host, detail: {} });
    }
  return { expected: expectedCount, missing, lastSeenOn };
}

/** Whether the machine has been missing long enough to accept an empty listing. */
function hasLastedMissing(
  { sightings, clock, options }: Pick<Deps, 'sightings' | 'clock' | 'options'>,
  { name }: Missing,
): boolean {
  const since = sightings.since({ resourceKind: 'instance', what: 'missing', name });
  return since !== undefined && clock.now() - since >= options.emptyForMs;
}

/**
 * Raises the alarms of hosts that the platform does not know. `lastSeenOn` counts the machines that were last seen on
 * each.
 */
function raiseUnknownHosts(
  { alarms, log, platform }: Pick<Deps, 'alarms' | 'log' | 'platform'>,
  lastSeenOn: ReadonlyMap<string, number>,
): void {
  const subjects = new Set<string>();
  for (const [host, machines] of lastSeenOn) {
    const subject = `${platform}/${host}`;
    subjects.add(subject);
    const detail = `${machines} on ${host}`;
    alarms.raise(
      { kind: 'host_unknown', subject, platform, text: UNKNOWN_HOST, detail, fields: { host, machines } },
      log,
    );
  }
  alarms.endOthers('host_unknown', platform, subjects);
}

/** Whether the instance may still have a machine. For an instance that has ended, its own step reports what is left. */
function hasMachine(status: InstanceStatus): boolean {
  return status !== 'ERROR' && status !== 'OFFLINE';
}

async function refsOf(items: readonly { ref: OwnerRef }[]): Promise<Set<OwnerRef>> {
  const refs = new Set<OwnerRef>();
  for await (const slice of inSlices(items)) for (const { ref } of slice) refs.add(ref);
  return refs;
}

/**
 * Compares a listing of volumes with the previous one: only volumes being deleted may disappear. If too many are
 * missing, the listing proves nothing; the platform's health does not change. The suspicion ends after a time, since
 * volumes removed by hand never return. A volume that counted as gone and is listed later is deleted again.
 */
export function judgeVolumes(deps: Deps): Judge<ObservedVolume> {
  let known: OwnerRef[] = [];
  let suspectSince: number | null | undefined;
  return async (listing, begunAt) => {
    const { platform, log, alarms, health } = deps;
    const result = await countVolumes(deps, listing, known);
    if (result === undefined) return false;
    const isLong = typeof suspectSince === 'number' && begunAt - suspectSince >= MAX_VOLUMES_SUSPECT_MS;
    if (whySuspect(result) !== undefined && !isLong && !(await areLossesAccepted(deps))) {
      if (typeof suspectSince === 'number') return false;
      await markVolumesSuspect(deps, begunAt);
      suspectSince = begunAt;
      const { missing, expected } = result;
      alarms.raise(
        {
          kind: 'volumes_suspect',
          subject: platform,
          platform,
          text: MISSING_VOLUMES,
          detail: `${missing} of ${expected} are missing`,
          fields: result,
        },
        log,
      );
      return false;
    }
    if (!health.isUp) return false;
    if (suspectSince !== null) {
      await markVolumesSuspect(deps, null);
      alarms.end({ kind: 'volumes_suspect', subject: platform });
    }
    suspectSince = null;
    if (listing.answer === 'listed') known = listing.items.map(({ ref }) => ref);
    return true;
  };
}

/** Stores or clears the mark. Clearing also ends the suspicion of an earlier process. */
async function markVolumesSuspect(
  { store, platform }: Pick<Deps, 'store' | 'platform'>,
  since: number | null,
): Promise<void> {
  const mark = markOf(platform, 'volumes_doubted_since');
  await store.transact(async (tx) => {
    if (since === null) await tx.marks.remove(mark);
    else await tx.marks.put(mark, since);
  });
}

async function countVolumes(
  { store }: { store: Store },
  listing: Listing<ObservedVolume>,
  known: readonly OwnerRef[],
): Promise<{ expected: number; missing: number } | undefined> {
  if (listing.answer === 'unknown') return undefined;
  const listed = await refsOf(listing.items);
  const counts = { expected: known.length, missing: 0 };
  for await (const slice of inSlices(known))
    for (const ref of slice) {
      if (listed.has(ref)) continue;
      const row = await store.read.volumes.byOwnerRef(ref);
      if (row === null || row.status === 'DELETING' || row.status === 'ERROR') counts.expected--;
      else counts.missing++;
    }
  return counts;
}
