import { toDollars, toOneLine } from '../../contract/values.ts';
import { failureReasons } from '../contract/deployment.ts';
import { toTimestamp } from '../contract/values.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type BalanceReading, remainingMinutes } from '../model/ledger-records.ts';
import type { Suspension, TeamRecord } from '../model/people.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { CatalogOffer } from '../providers/provider.ts';

const MAX_PHRASE_LENGTH = 100;
/** The most volumes that one mail lists. */
const MAX_LISTED = 20;

export interface Message {
  subject: string;
  text: string;
}

type Team = Pick<TeamRecord, 'name'>;

export function lowBalanceMessage({
  team,
  minutes,
  ...reading
}: BalanceReading & { team: Team; minutes: number }): Message {
  const name = toPhrase(team.name);
  return message(`Low balance: ${name} has about ${toDuration(minutes)} left`, [
    `At ${toTimestamp(reading.at)} the balance of ${name} was ${toDollars(reading.balanceMicroUsd)}.`,
    `Current usage costs ${toDollars(reading.burnMicroUsdPerHour)} per hour, so the balance lasts for about ` +
      `${toDuration(Math.max(1, Math.floor(remainingMinutes(reading))))}.`,
    'Top up the balance, or stop or terminate deployments that you do not need.',
  ]);
}

export function balanceExhaustedMessage({
  team,
  balanceMicroUsd,
  at,
  graceMs,
  stoppedGraceMs,
}: BalanceReading & { team: Team; graceMs: number; stoppedGraceMs: number }): Message {
  const name = toPhrase(team.name);
  return message(`The balance of ${name} is used up`, [
    `At ${toTimestamp(at)} the balance of ${name} was ${toDollars(balanceMicroUsd)}.`,
    'Until it is topped up, nothing can be deployed or started.',
    `Running deployments are stopped ${toDelay(graceMs)}, or terminated if they cannot be stopped; deployments stopped ` +
      `for ${toDuration(toMinutes(stoppedGraceMs))} are terminated, with their disks.`,
  ]);
}

interface VolumesMail {
  team: Team;
  volumes: readonly Pick<VolumeRecord, 'volumeId' | 'name' | 'sizeGb'>[];
  balanceMicroUsd: number;
  deleteAt: number;
}

export function volumesFrozenMessage({ team, volumes, balanceMicroUsd, deleteAt }: VolumesMail): Message {
  const name = toPhrase(team.name);
  const at = toTimestamp(deleteAt);
  return message(`The volumes of ${name} are deleted at ${at}`, [
    `The balance of ${name} is ${toDollars(balanceMicroUsd)}. As long as it is not above zero, no volume can be ` +
      'attached, and existing volumes are still charged.',
    `At ${at} these volumes are deleted with all their data; a volume that is still attached then, when its deployment ends:`,
    toList(volumes),
    'To keep them, top up the balance before that time. You can delete unneeded volumes now.',
  ]);
}

export function volumesDeletedMessage({ team, volumes, balanceMicroUsd }: VolumesMail): Message {
  const name = toPhrase(team.name);
  return message(`The volumes of ${name} are deleted now`, [
    `The balance of ${name} is ${toDollars(balanceMicroUsd)}, and the announced time has passed. These volumes ` +
      'are deleted with all their data:',
    toList(volumes),
  ]);
}

function toList(volumes: VolumesMail['volumes']): string {
  const lines = volumes
    .slice(0, MAX_LISTED)
    .map(({ volumeId, name, sizeGb }) => `- ${toLabel(name, volumeId)} (${volumeId}), ${sizeGb} GB`);
  const more = volumes.length - lines.length;
  return [...lines, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n');
}

/** M: Events: "payment receipts". */
export function receiptMessage({
  team,
  amountMicroUsd,
  balanceMicroUsd,
  at,
  reference,
}: {
  team: Team;
  amountMicroUsd: number;
  balanceMicroUsd: number;
  at: number;
  reference: string | null;
}): Message {
  const name = toPhrase(team.name);
  return message(`Receipt: ${toDollars(amountMicroUsd)} for ${name}`, [
    `${toDollars(amountMicroUsd)} was added to the balance of ${name} at ${toTimestamp(at)}.`,
    ...(reference === null ? [] : [`Reference: ${toPhrase(reference)}`]),
    `The balance is now ${toDollars(balanceMicroUsd)}.`,
  ]);
}

export function deploymentReadyMessage(
  record: Pick<
    DeploymentRecord,
    'id' | 'name' | 'providerId' | 'region' | 'rateMicroUsd' | 'loginUser' | 'ipAddress' | 'sshPort'
  >,
): Message {
  const { id, name, providerId, region, rateMicroUsd, loginUser, ipAddress, sshPort } = record;
  const label = toLabel(name, id);
  return message(`Ready: ${label}`, [
    `The deployment ${label} (${id}) on ${providerId} in ${toPhrase(region)} is running.`,
    ...(loginUser === null || ipAddress === null
      ? []
      : [
          `Log in with: ssh ${toPhrase(loginUser)}@${ipAddress}${sshPort === null || sshPort === 22 ? '' : ` -p ${sshPort}`}`,
        ]),
    `It costs ${toDollars(rateMicroUsd)} per hour from now on.`,
  ]);
}

export function deploymentFailedMessage({
  id,
  name,
  providerId,
  region,
  failureReason,
  failureDetails,
}: Pick<
  DeploymentRecord,
  'id' | 'name' | 'providerId' | 'region' | 'failureReason' | 'failureDetails'
>): Message {
  const label = toLabel(name, id);
  return message(`Failed: ${label}`, [
    `The deployment ${label} (${id}) on ${providerId} in ${toPhrase(region)} has failed.`,
    ...(failureReason === null ? [] : [failureReasons[failureReason]]),
    ...(failureDetails === null ? [] : [toPhrase(failureDetails)]),
    'It is no longer charged.',
  ]);
}

/** M: Events: "a sold-out configuration alert when a subscribed configuration returns to stock". */
export function backInStockMessage(
  { name, offerId, providerId, priceMicroUsdPerHour }: CatalogOffer,
  regions: readonly string[],
): Message {
  const label = toLabel(name, offerId);
  return message(`Back in stock: ${label}`, [
    `${label} (${toPhrase(offerId)}) of ${providerId} can be deployed again, in ${toPhrase(regions.join(', '))}.`,
    `It costs ${toDollars(priceMicroUsdPerHour)} per hour before discounts.`,
    'You asked for this alert; you can switch it off in the account settings.',
  ]);
}

const atSuspension: Readonly<Record<Suspension['running'], string>> = {
  keep: 'Its deployments go on and are charged.',
  stop: 'Its running deployments are stopped, as far as their provider can stop them. Stopped ones are charged.',
  end: 'Its deployments are terminated, and their disks are deleted. Volumes are kept and charged.',
};

/** `name`: of the user or the team. */
export function suspendedMessage(name: string, { reason, running }: Suspension): Message {
  return message(`Suspended: ${toPhrase(name)}`, [
    `${toPhrase(name)} is suspended: ${reason}`,
    atSuspension[running],
    'Until it is restored, nothing can be created or changed. You can still read, terminate, detach and delete.',
  ]);
}

/** `what`: such as `Terminated` or `Deleted`. */
export function orderedMessage(
  what: string,
  { id, name, reason }: { id: string; name: string; reason: string },
): Message {
  const label = toLabel(name, id);
  return message(`${what} by the operator: ${label}`, [
    `The operator of the marketplace has ordered this for ${label} (${id}): ${what.toLowerCase()}.`,
    `Reason: ${reason}`,
  ]);
}

export function restoredMessage(name: string): Message {
  return message(`Restored: ${toPhrase(name)}`, [
    `${toPhrase(name)} is no longer suspended. Deployments that were stopped stay stopped until you start them.`,
  ]);
}

/** Formats minutes, such as `1 h 30 min`. */
export function toDuration(minutes: number): string {
  const hours = Math.floor(minutes / 60);
  const rest = Math.floor(minutes % 60);
  if (hours === 0) return `${rest} min`;
  return rest === 0 ? `${hours} h` : `${hours} h ${rest} min`;
}

function toDelay(ms: number): string {
  return ms === 0 ? 'now' : `in ${toDuration(toMinutes(ms))}`;
}

function toMinutes(ms: number): number {
  return Math.ceil(ms / 60_000);
}

/** Shortens text from users or providers to fit a subject or a line. */
function toPhrase(text: string): string {
  return toOneLine(text, MAX_PHRASE_LENGTH);
}

function toLabel(name: string, otherwise: string): string {
  return toPhrase(name) || otherwise;
}

function message(subject: string, paragraphs: readonly string[]): Message {
  return { subject, text: `${paragraphs.join('\n\n')}\n` };
}
