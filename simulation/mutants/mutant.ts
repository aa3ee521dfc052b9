import type { AnyPlant, Subject } from '../runner/subject.ts';

/** A planted fault: something that Berth, or what it runs on, then does wrong. */
export interface Mutant<Plant extends AnyPlant = AnyPlant> {
  id: string;
  simulation: Subject;
  title: string;
  /** How many commands a run of the hunt has. Default: 40, of a real driver 30. */
  commands?: number;
  /** Changes the ports that a process starts with; a patch, where only the source has the guard. */
  plant: Plant | Patch;
}

/** A change of production source that removes a guard. */
export interface Patch {
  file: string;
  /** Part of one line; it occurs once in the file. */
  anchor: string;
  replacement: string;
}

export function isPatch(plant: AnyPlant | Patch): plant is Patch {
  return typeof plant !== 'function';
}

/** @throws {Error} if the anchor is lost, or is not the only one */
export function applyPatch({ file, anchor, replacement }: Patch, source: string): string {
  const parts = source.split(anchor);
  if (parts.length !== 2) throw new Error(`${file} has this anchor ${parts.length - 1} times: ${anchor}`);
  return parts.join(replacement);
}
