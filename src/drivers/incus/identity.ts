import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Instance } from './api.ts';
import { isMarked, mark, refOf, UUID } from './translate.ts';

/** Which of several instances with the same mark is the machine. */
export interface Identified {
  /** The machine. Undefined: there is none. */
  machine: Instance | undefined;
  /** The other instances. Never change these. */
  copies: readonly Instance[];
}

/** Identifies the machine `ref`. `marked`: all instances with its mark, under any name. */
export function identify(ref: OwnerRef, marked: readonly Instance[]): Identified {
  const isNamed = ({ name }: Instance): boolean => name === ref;
  const own = marked.filter(isItself);
  const machine =
    own.find(isNamed) ??
    own.find((one) => !isTemporary(one)) ??
    own[0] ??
    // It has another id, but the machine's name or a move's temporary name: the move did not keep the id.
    marked.find(isNamed) ??
    marked.find(isTemporary) ??
    // It was renamed while it was made: its id is not noted yet.
    marked.find((one) => !isProvedCopy(one));
  return { machine, copies: marked.filter((one) => one !== machine) };
}

/** The machines among the instances, each with its copies. */
export function identifyAll(instances: readonly Instance[]): Map<OwnerRef, Identified> {
  const groups = Map.groupBy(instances.filter(isMarked), refOf);
  return new Map([...groups].map(([ref, marked]) => [ref, identify(ref, marked)]));
}

/** Maps instance names to machines. A copy, and an instance that is not Berth's, maps to its own name. */
export function refsByName(instances: readonly Instance[]): Map<string, OwnerRef> {
  const refs = new Map(instances.map(({ name }) => [name, name]));
  for (const [ref, { machine }] of identifyAll(instances))
    if (machine !== undefined) refs.set(machine.name, ref);
  return refs;
}

/** Whether its mark has its own id. It is then the instance that Berth made. */
function isItself({ config }: Instance): boolean {
  return config[mark.uuid] !== undefined && config[mark.uuid] === (config[UUID] ?? config[mark.uuid]);
}

/** Whether it is surely a copy: `incus copy` copies the mark and assigns a new id. */
export function isProvedCopy(instance: Instance): boolean {
  return instance.config[mark.uuid] !== undefined && !isItself(instance);
}

/**
 * Whether it has the name that Incus gives to the copy while it moves an instance to another pool, or in some releases
 * to another member.
 */
export function isTemporary({ name }: Pick<Instance, 'name'>): boolean {
  return name.startsWith('move-of-');
}
