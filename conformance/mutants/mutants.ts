import { credentialMutants } from './access/credentials.mutants.ts';
import { availabilityMutants } from './catalog/availability.mutants.ts';
import { offerMutants } from './catalog/offers.mutants.ts';
import { conversationMutants } from './conventions/conversation.mutants.ts';
import { fieldMutants } from './conventions/fields.mutants.ts';
import { createMutants } from './instances/create.mutants.ts';
import { destroyMutants } from './instances/destroy.mutants.ts';
import { fullMutants } from './instances/full-level.mutants.ts';
import { lifeMutants } from './instances/life.mutants.ts';
import { refusalMutants } from './instances/refusal.mutants.ts';
import { guestMutants } from './machine/guest.mutants.ts';
import { machineMutants } from './machine/machine.mutants.ts';
import type { Mutant } from './mutant.ts';
import { restartMutants } from './restart/restart.mutants.ts';
import { attachmentMutants } from './volumes/attachment.mutants.ts';
import { volumeMutants } from './volumes/volume.mutants.ts';

/** Every mutant, by chapter of the matrix. */
export const mutants: Readonly<Record<string, readonly Mutant[]>> = {
  'any conversation': conversationMutants,
  offers: offerMutants,
  'availability and regions': availabilityMutants,
  credentials: credentialMutants,
  'fields of instances and volumes': fieldMutants,
  'creating and reading instances': createMutants,
  'the life of an instance': lifeMutants,
  'the machine behind it': machineMutants,
  'inside the machine': guestMutants,
  'destroying an instance': destroyMutants,
  'what must be refused': refusalMutants,
  'names, keys, first boots and races': fullMutants,
  'a restart': restartMutants,
  volumes: volumeMutants,
  attachments: attachmentMutants,
};

export const allMutants: readonly Mutant[] = Object.values(mutants).flat();
