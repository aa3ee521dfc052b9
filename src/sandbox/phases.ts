import type { Method } from '../platform-model/platform.ts';
import type { Phase, VolumePhase } from '../platform-model/rules.ts';

const machinePhases = {
  create: 'boot',
  stop: 'stop',
  start: 'start',
  restart: 'restart',
  destroy: 'destroy',
} as const satisfies Partial<Record<Method, Phase>>;

const volumePhases = [
  'volumes.create',
  'volumes.attach',
  'volumes.detach',
  'volumes.resize',
  'volumes.destroy',
] as const satisfies `volumes.${VolumePhase}`[];

export const phases = [...Object.values(machinePhases), ...volumePhases];
/** A transition of a machine, or of a volume. */
export type AnyPhase = (typeof phases)[number];

/** The transition that this call of the driver begins. */
export function phaseOf(method: Method): AnyPhase | undefined {
  const volume = volumePhases.find((phase) => phase === method);
  return volume ?? machinePhases[method as keyof typeof machinePhases];
}

/** The phase of a volume; undefined: it is of a machine. */
export function volumePhaseOf(phase: AnyPhase): VolumePhase | undefined {
  const [of, name] = phase.split('.');
  return of === 'volumes' ? (name as VolumePhase) : undefined;
}
