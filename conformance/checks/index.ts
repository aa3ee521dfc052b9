import { authenticationChecks, liveInstanceChecks } from './access/authentication.ts';
import { otherAccountChecks } from './access/other-account.ts';
import { secondKeyChecks } from './access/second-key.ts';
import { tokenChecks } from './access/token.ts';
import { raceChecks } from './capacity/race.ts';
import { soldOutChecks } from './capacity/sold-out.ts';
import { availabilityChecks } from './catalog/availability.ts';
import { catalogChecks } from './catalog/catalog.ts';
import { regionChecks } from './catalog/regions.ts';
import type { Check } from './check.ts';
import { conventionChecks } from './conventions/conventions.ts';
import { errorChecks } from './conventions/errors.ts';
import { fieldChecks } from './conventions/fields.ts';
import { timestampChecks } from './conventions/timestamps.ts';
import { createChecks, nameChecks } from './instances/create.ts';
import { deleteAnswerChecks } from './instances/delete-answers.ts';
import { destroyChecks, earlyDeleteChecks } from './instances/destroy.ts';
import { elsewhereChecks } from './instances/elsewhere.ts';
import { instanceFactChecks } from './instances/instance-facts.ts';
import { instanceTimeChecks } from './instances/instance-times.ts';
import { instanceChecks } from './instances/instances.ts';
import { listChecks } from './instances/lists.ts';
import { notFoundChecks } from './instances/not-found.ts';
import { oneInstanceChecks } from './instances/one-instance.ts';
import { polledReadChecks } from './instances/polled-read.ts';
import { refusalChecks } from './instances/refusals.ts';
import { secondCycleChecks } from './instances/second-cycle.ts';
import { stopStartChecks } from './instances/stop-start.ts';
import { traceChecks } from './instances/trace.ts';
import { firstBootChecks } from './machine/first-boot.ts';
import { guestChecks } from './machine/guest.ts';
import { sshChecks } from './machine/ssh.ts';
import { restartChecks } from './restart/restart.ts';
import { volumeAttachmentChecks } from './volumes/attachments.ts';
import { volumeOfInstanceChecks } from './volumes/of-instance.ts';
import { volumeStateChecks } from './volumes/states.ts';
import { volumeChecks } from './volumes/volumes.ts';

/** Every check, in no particular order: reports follow requirements.yaml. */
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
  ...deleteAnswerChecks,
  ...destroyChecks,
  ...elsewhereChecks,
  ...instanceChecks,
  ...instanceFactChecks,
  ...instanceTimeChecks,
  ...listChecks,
  ...liveInstanceChecks,
  ...notFoundChecks,
  ...oneInstanceChecks,
  ...polledReadChecks,
  ...guestChecks,
  ...sshChecks,
  ...stopStartChecks,
  ...traceChecks,
  ...earlyDeleteChecks,
  ...firstBootChecks,
  ...nameChecks,
  ...otherAccountChecks,
  ...raceChecks,
  ...refusalChecks,
  ...restartChecks,
  ...secondCycleChecks,
  ...secondKeyChecks,
  ...soldOutChecks,
  ...volumeAttachmentChecks,
  ...volumeOfInstanceChecks,
  ...volumeStateChecks,
  ...volumeChecks,
];
