import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Instance } from './api.ts';
import { isMarked, mark, refOf, UUID } from './translate.ts';

/** Which of the instances that have the mark of one machine is the machine. */
export interface Identified {
  /** Undefined: none of them, or it cannot be told. */
  machine: Instance | undefined;
  /** The others: nobody is to touch them. */
  copies: readonly Instance[];
  /** One of several is the machine, and nothing says which. */
  isUnclear: boolean;
}

/** `marked`: all that have the mark of `ref`, under any name. */
export function identify(ref: OwnerRef, marked: readonly Instance[]): Identified {
  const best = (those: readonly Instance[]): Instance | undefined =>
    those.find(({ name }) => name === ref) ?? those.find((one) => !isTemporary(one)) ?? those[0];
  // An instance of an earlier Berth does not say which it is: then its name does, or that there is no other.
  const silent = marked.filter(({ config }) => config[mark.uuid] === undefined);
  const named = silent.find(({ name }) => name === ref);
  const settled = silent.filter((one) => !isTemporary(one));
  const isUnclear = marked.every((one) => !isItself(one)) && named === undefined && settled.length > 1;
  const machine = isUnclear
    ? undefined
    : (best(marked.filter(isItself)) ??
      best(silent) ??
      // Another id under its own name, or under that of a move, while the first is gone: a move that did not keep it.
      marked.find(({ name }) => name === ref) ??
      marked.find(isTemporary));
  return { machine, copies: marked.filter((one) => one !== machine), isUnclear };
}

/** The machines among instances, each with the copies of it. */
export function identifyAll(instances: readonly Instance[]): Map<OwnerRef, Identified> {
  const groups = Map.groupBy(instances.filter(isMarked), refOf);
  return new Map([...groups].map(([ref, marked]) => [ref, identify(ref, marked)]));
}

/** The machine that each is, by its name; what is none of Berth's, and a copy, is called as it is. */
export function refsByName(instances: readonly Instance[]): Map<string, OwnerRef> {
  const refs = new Map(instances.map(({ name }) => [name, name]));
  for (const [ref, { machine }] of identifyAll(instances))
    if (machine !== undefined) refs.set(machine.name, ref);
  return refs;
}

/** It says that it is the one that was made. */
function isItself({ config }: Instance): boolean {
  return config[mark.uuid] !== undefined && config[mark.uuid] === (config[UUID] ?? config[mark.uuid]);
}

/** `incus copy` takes the mark along, and makes another id. */
export function isProvedCopy(instance: Instance): boolean {
  return instance.config[mark.uuid] !== undefined && !isItself(instance);
}

/** While Incus moves an instance to another pool, and to another member in some releases, its copy is called so. */
export function isTemporary({ name }: Pick<Instance, 'name'>): boolean {
  return name.startsWith('move-of-');
}
