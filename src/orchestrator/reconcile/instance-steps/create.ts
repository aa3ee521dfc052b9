import type { InstanceRecord } from '../../instances/instance-record.ts';
import { amend } from '../../instances/transition.ts';
import type { MachineSpec, ObservedMachine, Step } from '../../ports/platform-driver.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { failInstance } from './fail.ts';

const BUILDING_POLL_MS = 500;

/** PROVISIONING, first half: the machine. An earlier call that may have reached the platform is looked for first. */
export async function stepCreate(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const step = await adoptOrCreate(context, lease, record);
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    const { clock, log } = context;
    const now = clock.now();
    if (step.outcome === 'done') {
      const { endpoint } = step.value;
      const fingerprint = endpoint?.hostKeyFingerprint ?? current.hostKeyFingerprint;
      const spec = { ...current.spec, cloudInit: undefined };
      await amend(tx, current, now, { endpoint: endpoint ?? null, hostKeyFingerprint: fingerprint, spec });
      for (const { volumeId } of await tx.volumes.attachmentsOfInstance(current.id))
        await tx.work.hasten(volumeId, now);
      return { step: 'verify', deadlineAt: lease.deadlineAt };
    }
    const isLate = lease.deadlineAt !== null && now >= lease.deadlineAt;
    if (step.outcome !== 'failed' && isLate)
      return failInstance(
        context,
        tx,
        current,
        lateText(current, 'the platform was still making the machine'),
      );
    if (step.outcome === 'building') return { step: 'again', afterMs: BUILDING_POLL_MS };
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    log.warn(
      { instance: current.id, code: step.code, sideEffect: step.sideEffect, detail: step.detail },
      'the platform refused or lost a create',
    );
    if (isFinal(step))
      return failInstance(
        context,
        tx,
        current,
        `The platform could not make the machine (${describeFailure(step)}).`,
      );
    if (isLate && step.code !== 'unknown_outcome' && step.code !== 'transient' && step.code !== 'auth')
      return failInstance(context, tx, current, lateText(current, describeFailure(step)));
    return retry(context, lease, describeFailure(step), step.retryAfterMs);
  });
}

/** An adopted machine that is still being built is looked at again; there is no cookie of a call to hand back. */
type Attempted = Step<ObservedMachine> | { outcome: 'building' };

async function adoptOrCreate(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<Attempted> {
  const { driver } = context;
  const mayHaveBeenCalled = lease.attempt > 1 && lease.cookie === null;
  if (mayHaveBeenCalled) {
    const found = await look(context, () => driver.get(record.ownerRef));
    if (found.answer === 'unknown')
      return { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: found.reason };
    if (found.answer === 'observed') return adopt(found.value);
  }
  return callStep(context, lease, () => driver.create(toMachineSpec(context, record), lease.cookie));
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

function toMachineSpec(
  { catalog }: ReconcileContext,
  { ownerRef, offerId, region, name, id, spec }: InstanceRecord,
): MachineSpec {
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

function lateText({ spec }: InstanceRecord, what: string): string {
  return `The instance was not ONLINE within ${Math.round(spec.onlineWithinMs / 60_000)} minutes: ${what}.`;
}
