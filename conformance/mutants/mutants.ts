import { accessMutants } from './access.mutants.ts';
import { attachmentMutants } from './attachment.mutants.ts';
import { availabilityMutants } from './availability.mutants.ts';
import { conversationMutants } from './conversation.mutants.ts';
import { createMutants } from './create.mutants.ts';
import { credentialMutants } from './credentials.mutants.ts';
import { destroyMutants } from './destroy.mutants.ts';
import { fieldMutants } from './fields.mutants.ts';
import { fullMutants } from './full.mutants.ts';
import { lifeMutants } from './life.mutants.ts';
import { machineMutants } from './machine.mutants.ts';
import type { Mutant } from './mutant.ts';
import { offerMutants } from './offers.mutants.ts';
import { refusalMutants } from './refusal.mutants.ts';
import { volumeMutants } from './volume.mutants.ts';

/** Every mutant, by what it is about: a chapter of the matrix each. */
export const mutants: Readonly<Record<string, readonly Mutant[]>> = {
  'any conversation': conversationMutants,
  offers: offerMutants,
  'availability and regions': availabilityMutants,
  credentials: credentialMutants,
  'fields of instances and volumes': fieldMutants,
  'creating and reading instances': createMutants,
  'the life of an instance': lifeMutants,
  'the machine behind it': machineMutants,
  'destroying an instance': destroyMutants,
  'who may act on an instance, and how it is reached': accessMutants,
  'what must be refused': refusalMutants,
  'names, keys, first boots and races': fullMutants,
  volumes: volumeMutants,
  attachments: attachmentMutants,
};

export const allMutants: readonly Mutant[] = Object.values(mutants).flat();
