import { authenticationChecks } from './authentication.ts';
import { availabilityChecks } from './availability.ts';
import { catalogChecks } from './catalog.ts';
import type { Check } from './check.ts';
import { conventionChecks } from './conventions.ts';
import { createChecks } from './create.ts';
import { destroyChecks } from './destroy.ts';
import { earlyDeleteChecks } from './early-delete.ts';
import { errorChecks } from './errors.ts';
import { fieldChecks } from './fields.ts';
import { firstBootChecks } from './first-boot.ts';
import { instanceFactChecks } from './instance-facts.ts';
import { instanceTimeChecks } from './instance-times.ts';
import { instanceChecks } from './instances.ts';
import { liveInstanceChecks } from './live-instance.ts';
import { nameChecks } from './names.ts';
import { notFoundChecks } from './not-found.ts';
import { polledReadChecks } from './polled-read.ts';
import { raceChecks } from './race.ts';
import { refusalChecks } from './refusals.ts';
import { regionChecks } from './regions.ts';
import { severalKeysChecks } from './several-keys.ts';
import { soldOutChecks } from './sold-out.ts';
import { sshChecks } from './ssh.ts';
import { stopStartChecks } from './stop-start.ts';
import { timestampChecks } from './timestamps.ts';
import { tokenChecks } from './token.ts';
import { traceChecks } from './trace.ts';
import { volumeAttachmentChecks } from './volume-attachments.ts';
import { volumeStateChecks } from './volume-states.ts';
import { volumeChecks } from './volumes.ts';

/** Every check, in no order: reports follow requirements.yaml. */
export const CHECKS: readonly Check[] = [
  ...tokenChecks,
  ...regionChecks,
  ...fieldChecks,
  ...errorChecks,
  ...conventionChecks,
  ...timestampChecks,
  ...catalogChecks,
  ...authenticationChecks,
  ...availabilityChecks,
  ...createChecks,
  ...destroyChecks,
  ...instanceChecks,
  ...instanceFactChecks,
  ...instanceTimeChecks,
  ...liveInstanceChecks,
  ...notFoundChecks,
  ...polledReadChecks,
  ...sshChecks,
  ...stopStartChecks,
  ...traceChecks,
  ...earlyDeleteChecks,
  ...firstBootChecks,
  ...nameChecks,
  ...raceChecks,
  ...refusalChecks,
  ...severalKeysChecks,
  ...soldOutChecks,
  ...volumeAttachmentChecks,
  ...volumeStateChecks,
  ...volumeChecks,
];
