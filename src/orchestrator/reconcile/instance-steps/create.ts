import type { InstanceRecord } from '../../instances/instance-record.ts';
import { toNote } from '../../instances/note.ts';
import { amend } from '../../instances/transition.ts';
import type { MachineSpec, ObservedMachine, Step } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext, StepContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { describeWindow, failInstance } from './fail.ts';

const BUILDING_POLL_MS = 500;

type Failed = Extract<Attempted, { outcome: 'failed' }>;

/** PROVISIONING, first half: the machine. An earlier call that may have reached the platform is looked for first. */
export async function stepCreate(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const step = await adoptOrCreate(context, lease, record);
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'done') return made(context, lease, tx, current, step.value);
    if (step.outcome === 'failed') return notMade(context, lease, tx, current, step);
    if (isPast(lease.deadlineAt, context.clock.now()))
      return failInstance(context, tx, current, lateText(current, unfinished[step.outcome]));
    if (step.outcome === 'building') return { step: 'again', afterMs: BUILDING_POLL_MS };
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    return { step: 'again', afterMs: step.afterMs, problem: 'an earlier create may still turn up' };
  });
}

const unfinished = {
  pending: 'the platform was still making the machine',
  building: 'the platform was still making the machine',
  absent: 'the platform did not get to make the machine',
};

async function made(
  { clock }: StepContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  { endpoint }: ObservedMachine,
): Promise<Next> {
  const now = clock.now();
  const hostKeyFingerprint = endpoint?.hostKeyFingerprint ?? record.hostKeyFingerprint;
  const spec = { ...record.spec, cloudInit: undefined };
  await amend(tx, record, now, { endpoint: endpoint ?? null, hostKeyFingerprint, spec });
  for (const { volumeId } of await tx.volumes.attachmentsOfInstance(record.id))
    await tx.work.hasten(volumeId, now);
  return { step: 'verify', deadlineAt: lease.deadlineAt };
}

async function notMade(
  context: StepContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  failed: Failed,
): Promise<Next> {
  const { code, sideEffect, detail } = failed;
  context.log.warn(
    { instance: record.id, code, sideEffect, detail },
    'the platform refused or lost a create',
  );
  const reason = describeFailure(failed);
  if (isFinal(failed))
    return failInstance(context, tx, record, `The platform could not make the machine (${reason}).`);
  const isDoubt = code === 'unknown_outcome' || code === 'transient' || code === 'auth';
  if (isPast(lease.deadlineAt, context.clock.now()) && !isDoubt)
    return failInstance(context, tx, record, lateText(record, reason));
  return retry(context, lease, reason, failed.retryAfterMs);
}

type Attempted =
  | Step<ObservedMachine>
  /** Adopted, and still being built: it is looked at again; there is no cookie of a call to hand back. */
  | { outcome: 'building' }
  /** Not there, and not to be sent again now: an earlier call may still turn up, or the window is over. */
  | { outcome: 'absent'; afterMs: number };

async function adoptOrCreate(context: StepContext, lease: Lease, record: InstanceRecord): Promise<Attempted> {
  const { driver, creates, clock } = context;
  const { ownerRef } = record;
  const mayHaveBeenCalled = lease.attempt > 1 && lease.cookie === null;
  if (mayHaveBeenCalled) {
    const found = await look(context, () => driver.get(ownerRef));
    if (found.answer === 'unknown')
      return { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: found.reason };
    if (found.answer === 'observed') return adopt(found.value);
    const afterMs = creates.mayTurnUpForMs(ownerRef);
    if (afterMs > 0 || isPast(lease.deadlineAt, clock.now())) return { outcome: 'absent', afterMs };
  }
  const spec = toMachineSpec(context, record);
  return callStep(context, lease, () => creates.send(ownerRef, () => driver.create(spec, lease.cookie)));
}

function isPast(deadlineAt: number | null, now: number): boolean {
  return deadlineAt !== null && now >= deadlineAt;
}

/** The machine is there: it is never made a second time. */
function adopt(machine: ObservedMachine): Attempted {
  switch (machine.power) {
    case 'building':
    case 'starting':
      return { outcome: 'building' };
    case 'failed':
      return {
        outcome: 'failed',
        code: 'boot_failed',
        sideEffect: 'certain',
        detail: machine.detail ?? 'no detail given',
      };
    case 'destroying':
      return {
        outcome: 'failed',
        code: 'boot_failed',
        sideEffect: 'certain',
        detail: 'the platform is removing the machine',
      };
    case 'running':
    case 'stopping':
    case 'stopped':
      return { outcome: 'done', value: machine };
  }
}

function toMachineSpec({ catalog, installationId }: ReconcileContext, record: InstanceRecord): MachineSpec {
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
  };
}

/** A host name that is unique on the platform whatever the instance is called (O: CreateInstanceRequest, name). */
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
  return `The instance was not ONLINE within ${describeWindow(record)}: ${what}.`;
}
