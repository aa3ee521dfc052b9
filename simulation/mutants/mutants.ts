import { incusMutants } from './incus-mutants.ts';
import { leakMutants } from './leak-mutants.ts';
import { libvirtMutants } from './libvirt-mutants.ts';
import { marketplaceMutants } from './marketplace-mutants.ts';
import type { Mutant } from './mutant.ts';
import { openstackMutants } from './openstack-mutants.ts';
import { orchestratorMutants } from './orchestrator-mutants.ts';

/** Every planted fault, in the order of seeds.md. */
export const mutants: readonly Mutant[] = [
  ...leakMutants,
  ...orchestratorMutants,
  ...libvirtMutants,
  ...incusMutants,
  ...openstackMutants,
  ...marketplaceMutants,
];
