import { activeCordons, cordonedHosts } from '../../capacity/cordons.ts';
import { toNote } from '../../instances/note.ts';
import { amend } from '../../instances/transition.ts';
import type { MachineSpec, ObservedMachine, Step } from '../../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import { makeAttachmentsDue } from '../../model/rows.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { readMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterCreate, atItsHost, findEarlierCreate, isRefused, waitForEarlier } from '../adopt-or-create.ts';
import type { StepContext } from '../context.ts';
import {
  describeFailure,
  describeWindow,
  type Failed,
  failCreate,
  isPastDeadline,
  isRepeated,
  retry,
  retryFailed,
} from '../fail.ts';
import { alone, openNextAttempt, placeInstance } from '../place.ts';
import { countRefusal, endRefusals, takeTrials } from '../refusals.ts';
import { type Next, settleInstance, whilePending } from '../settle.ts';

const BUILDING_POLL_MS = 500;

/** The first half of PROVISIONING: makes the machine. First searches for the machine of an earlier call. */
export async function stepCreate(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const attempted = await adoptOrCreate(context, lease, record);
  await settleInstance(
    context,
    lease,
    async (tx, current, lease): Promise<Next> => {
      if (attempted.outcome === 'done') return made(context, lease, tx, current, attempted.value);
      if (attempted.outcome === 'failed') return notMade(context, lease, tx, current, attempted);
      // A late create fails now, and its clean-up waits until the platform answers (O: an instance is ONLINE within its
      // window, or ERROR).
      if (isPastDeadline(lease, context.clock.now())) {
        const why = attempted.outcome === 'unknown' ? attempted.reason : unfinished[attempted.outcome];
        return failCreate(context, tx, current, 'late', lateText(current, why));
      }
      switch (attempted.outcome) {
        case 'unknown':
          return retry(context, lease, attempted.reason);
        case 'pending':
          return whilePending(attempted);
        case 'building':
          return { step: 'again', afterMs: BUILDING_POLL_MS };
        case 'absent':
          return waitForEarlier(lease, attempted.waitMs);
      }
    },
    { visibility: afterCreate(attempted, lease, context.clock.now()) },
  );
}

const unfinished = {
  pending: 'the platform was still making the machine',
  building: 'the platform was still making the machine',
  absent: 'the platform had not started to make the machine',
};

async function made(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  { endpoint, host }: ObservedMachine,
): Promise<Next> {
  const now = context.clock.now();
  await endRefusals(context, tx, record, host);
  const hostKeyFingerprint = endpoint?.hostKeyFingerprint ?? record.hostKeyFingerprint;
  const spec = { ...record.spec, cloudInit: undefined };
  await amend(tx, record, now, { endpoint: endpoint ?? null, hostKeyFingerprint, spec, host: host ?? null });
  await makeAttachmentsDue(tx, record.id, now);
  return { step: 'verify', deadlineAt: lease.deadlineAt };
}

/**
 * Ends the create after a refusal that made nothing. Retries after any other failure; the retry first searches for the
 * machine.
 */
async function notMade(
  context: Recording & Calling,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  failed: Failed,
): Promise<Next> {
  const reason = describeFailure(failed);
  const isLate = isPastDeadline(lease, context.clock.now());
  await countRefusal(context, tx, lease, record, failed);
  if (!isLate) {
    const next = await openNextAttempt(context, lease, tx, record, failed, {
      resourceKind: 'instance',
      places: context.driver.place !== undefined,
      names: instanceLogNames(record),
      write: (changes) => amend(tx, record, context.clock.now(), changes),
    });
    if (next !== undefined) return next;
  }
  if (isRefused(failed)) return failCreate(context, tx, record, failed.code, reason);
  if (isLate) return failCreate(context, tx, record, 'late', lateText(record, reason));
  return retryFailed(context, lease, failed);
}

type Attempted =
  | Step<ObservedMachine>
  /** The machine was adopted, and was still being built at the end of its window. */
  | { outcome: 'building' }
  /** The machine is absent, and no create is sent now: an earlier call may still take effect, or the window is over. */
  | { outcome: 'absent'; waitMs: number }
  | { outcome: 'unknown'; reason: string };

async function adoptOrCreate(context: StepContext, lease: Lease, record: InstanceRecord): Promise<Attempted> {
  const { driver, clock } = context;
  const before = await findEarlierCreate(context, lease, record, {
    get: () => readMachine(context, record),
    place: driver.place,
  });
  if (before.answer === 'unknown') return { outcome: 'unknown', reason: before.reason };
  if (before.answer === 'observed') {
    const adopted = adopt(before.value);
    // A platform may need several calls to make a machine. The driver continues with the existing one.
    if (adopted.outcome !== 'building' || isPastDeadline(lease, clock.now())) return adopted;
  }
  const waitMs = before.answer === 'absent' ? before.waitMs : 0;
  const isAnew = before.answer !== 'observed' && lease.cookie === null && isRepeated(lease);
  if (waitMs > 0 || (isAnew && isPastDeadline(lease, clock.now()))) return { outcome: 'absent', waitMs };
  if (driver.place === undefined && lease.cookie === null) await takeTrials(context, record.id);
  const cordons = await activeCordons(context.store.read, clock.now(), record.id);
  const avoidHosts = cordonedHosts(cordons, context.platform);
  const located = atItsHost(record, before, driver.place);
  const spec = toMachineSpec(context, located, avoidHosts);
  if (driver.place === undefined || lease.cookie !== null || located.host !== null)
    return callStep(context, lease, (call) => driver.create(spec, lease.cookie, call));
  return alone(context, async () => {
    const placed = await placeInstance(context, record, spec);
    if ('outcome' in placed) return placed;
    const placedSpec = toMachineSpec(context, placed, []);
    return callStep(context, lease, (call) => driver.create(placedSpec, lease.cookie, call));
  });
}

/** The outcome for a machine that exists. It is never made a second time. */
function adopt(machine: ObservedMachine): Attempted {
  const { host } = machine;
  const at = host === undefined ? {} : { host };
  const failed = { outcome: 'failed', code: 'boot_failed', sideEffect: 'certain', ...at } as const;
  switch (machine.power) {
    case 'building':
    case 'starting':
      return { outcome: 'building' };
    case 'failed':
      return { ...failed, detail: machine.detail ?? 'no detail given' };
    case 'destroying':
      return { ...failed, detail: 'the platform is removing the machine' };
    case 'running':
    case 'paused':
    case 'stopping':
    case 'stopped':
      return { outcome: 'done', value: machine };
  }
}

function toMachineSpec(
  { catalog, installationId }: Recording & Calling,
  record: InstanceRecord,
  avoidHosts: readonly string[],
): MachineSpec {
  const { ownerRef, offerId, region, name, id, spec } = record;
  return {
    ref: ownerRef,
    offerId,
    datacenter: catalog.regions.get(region)?.datacenter ?? region,
    hostname: toHostname(name, id),
    image: spec.image,
    vcpus: spec.vcpus,
    memoryGb: spec.memoryGb,
    rootDiskGb: spec.storageGb,
    gpuCount: spec.gpuCount ?? 0,
    gpuType: spec.gpuType,
    sshKeys: spec.sshKeys,
    cloudInit: spec.cloudInit,
    note: toNote(installationId, record),
    ...(record.host !== null && { host: record.host }),
    ...(avoidHosts.length > 0 && { avoidHosts }),
  };
}

/** A host name that is unique on the platform, for any name of the instance (O: CreateInstanceRequest, name). */
export function toHostname(name: string | null, id: string): string {
  const label = (name ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '');
  const suffix = id.slice(-8);
  return label === '' ? `inst-${suffix}` : `${label}-${suffix}`;
}

function lateText(record: InstanceRecord, what: string): string {
  return `it was not ONLINE within ${describeWindow(record)}: ${what}`;
}
