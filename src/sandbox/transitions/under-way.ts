import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Phase } from '../../platform-model/rules.ts';
import type { SandboxMachine, SandboxPlatform } from '../machines.ts';
import { type AnyPhase, volumePhaseOf } from '../phases.ts';

/** A transition of a machine or a volume, or of some attachments of the volume, by their machines. */
export interface Transition {
  ref: OwnerRef;
  phase: AnyPhase;
  parts: readonly OwnerRef[];
}

/** Returns the parts that are in this transition now: the ref itself, or for an attachment that of its machine. */
export function partsUnderWay(
  { machines, volumes }: SandboxPlatform,
  { ref, phase }: Omit<Transition, 'parts'>,
  now: number,
): OwnerRef[] {
  const ofVolume = volumePhaseOf(phase);
  if (ofVolume !== undefined) return volumes.underWay(ref, ofVolume);
  const [machine] = machines.of(ref);
  return machine !== undefined && isUnderWay(machine, phase as Phase, now) ? [ref] : [];
}

/** Sets when the transition ends, unless it has ended. */
export function endAt(
  platform: SandboxPlatform,
  { ref, phase, parts }: Transition,
  { at, now }: { at: number; now: number },
): void {
  const left = partsUnderWay(platform, { ref, phase }, now).filter((part) => parts.includes(part));
  const [machine] = platform.machines.of(ref);
  if (volumePhaseOf(phase) !== undefined) platform.volumes.endAt(ref, left, at);
  else if (machine !== undefined && left.length > 0)
    platform.machines.change(
      machine,
      phase === 'restart' && machine.power === 'running' ? { bootedAt: at } : { until: at },
    );
}

const POWERS = { boot: 'building', stop: 'stopping', start: 'starting', destroy: 'destroying' } as const;

function isUnderWay({ power, bootedAt, isRestarting }: SandboxMachine, phase: Phase, now: number): boolean {
  if (phase === 'restart') return isRestarting === true || (power === 'running' && (bootedAt ?? 0) > now);
  return power === POWERS[phase];
}
