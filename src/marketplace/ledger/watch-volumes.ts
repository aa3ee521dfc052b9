import type { Deps } from '../deps.ts';
import { mailManagers } from '../mail/mail-managers.ts';
import { volumesDeletedMessage, volumesFrozenMessage } from '../mail/messages.ts';
import type { Reader, Transaction } from '../ports/store.ts';
import { isActive } from '../records/deployment-record.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { realTimeBalance } from './balance.ts';
import { areVolumesDue, dueNotice } from './volume-notices.ts';

/** The balance is above zero again, or the time that was mailed is not over: the volumes are kept. */
export class VolumesAreKept extends Error {
  override readonly name = 'VolumesAreKept';
}

/**
 * Mails what is due about the volumes of a team whose balance is used up, and returns those that are to be deleted now.
 * One on a deployment that is not over waits for its end.
 */
export async function watchVolumes(
  deps: Pick<Deps, 'store' | 'clock' | 'random' | 'options'>,
  teamId: string,
  now: number,
): Promise<VolumeRecord[]> {
  const { store } = deps;
  if ((await keptVolumes(store.read, teamId)).length === 0) return [];
  const due = await store.transact((tx) => mailNotice(deps, tx, teamId, now));
  const isFree = await Promise.all(due.map((volume) => isOnNoDeployment(store.read, volume)));
  return due.filter((_, index) => isFree[index]);
}

/**
 * Looks once more, with the team locked, in the transaction that begins to delete a volume.
 *
 * @throws {VolumesAreKept}
 */
export async function assertVolumesDue(
  tx: Pick<Transaction, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  now: number,
): Promise<void> {
  const team = await tx.teams.byId(teamId);
  const isDue = team !== null && areVolumesDue(team.watch, now);
  if (isDue && (await realTimeBalance(tx, teamId, now)) <= 0) return;
  throw new VolumesAreKept(`the volumes of ${teamId} are kept`);
}

async function keptVolumes({ volumes }: Pick<Reader, 'volumes'>, teamId: string): Promise<VolumeRecord[]> {
  return (await volumes.ofTeam(teamId)).filter(({ status }) => status !== 'deleting');
}

async function mailNotice(
  deps: Pick<Deps, 'clock' | 'random' | 'options'>,
  tx: Transaction,
  teamId: string,
  now: number,
): Promise<VolumeRecord[]> {
  const team = await tx.teams.byId(teamId);
  if (team === null) return [];
  const volumes = await keptVolumes(tx, teamId);
  const notice = dueNotice(team.watch, deps.options.billing.zeroBalance.volumes, now);
  if (notice === null || volumes.length === 0) return areVolumesDue(team.watch, now) ? volumes : [];
  const { deleteAt, noticeMs } = notice;
  const watch = { ...team.watch, volumesDeleteAt: deleteAt, volumesNoticeMs: noticeMs };
  await tx.teams.update({ ...team, watch });
  const balanceMicroUsd = await realTimeBalance(tx, teamId, now);
  const told = { team, volumes, balanceMicroUsd, deleteAt };
  await mailManagers(deps, tx, team, {
    class: 'billing',
    kind: noticeMs === 0 ? 'volumes_deleted' : 'volumes_frozen',
    dedupeKey: `volumes:${teamId}:${deleteAt}:${noticeMs}`,
    ...(noticeMs === 0 ? volumesDeletedMessage(told) : volumesFrozenMessage(told)),
  });
  return areVolumesDue(watch, now) ? volumes : [];
}

async function isOnNoDeployment(
  { volumes, deployments }: Pick<Reader, 'volumes' | 'deployments'>,
  { id }: VolumeRecord,
): Promise<boolean> {
  for (const { deploymentId } of await volumes.attachmentsOf({ volumeId: id })) {
    const deployment = await deployments.byId(deploymentId);
    if (deployment !== null && isActive(deployment)) return false;
  }
  return true;
}
