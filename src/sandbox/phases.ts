import type { Method } from '../platform-model/platform.ts';
import type { Phase, VolumePhase } from '../platform-model/rules.ts';

export const phases = [
  'boot',
  'stop',
  'start',
  'restart',
  'destroy',
  'volumes.create',
  'volumes.attach',
  'volumes.detach',
  'volumes.resize',
  'volumes.destroy',
] as const satisfies (Phase | `volumes.${VolumePhase}`)[];
/** A transition of a machine, or of a volume. */
export type AnyPhase = (typeof phases)[number];

/** The transition that this call of the driver begins. */
export function phaseOf(method: Method): AnyPhase | undefined {
  return method === 'create' ? 'boot' : phases.find((phase) => phase === method);
}

/** The phase of a volume; undefined: it is of a machine. */
export function volumePhaseOf(phase: AnyPhase): VolumePhase | undefined {
  const [of, name] = phase.split('.');
  return of === 'volumes' ? (name as VolumePhase) : undefined;
}
