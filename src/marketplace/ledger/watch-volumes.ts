import type { Deps } from '../deps.ts';
import { volumesDeletedMessage, volumesFrozenMessage } from '../mail/messages.ts';
import { mailManagers } from '../mail/outbox.ts';
import { isActive } from '../model/deployment-record.ts';
import type { BalanceReading } from '../model/ledger-records.ts';
import type { VolumePolicy } from '../model/options.ts';
import type { BalanceWatch, TeamRecord } from '../model/people.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { realTimeBalance } from './balance.ts';

/** The volumes are kept: the balance is above zero again, or the announced time has not passed. */
export class VolumesAreKept extends Error {
  override readonly name = 'VolumesAreKept';
}

/** The volumes to delete now. A volume on a live deployment is kept until the deployment ends. */
export async function volumesToDelete(
  read: Pick<Reader, 'teams' | 'volumes' | 'deployments'>,
  teamId: string,
  now: number,
): Promise<VolumeRecord[]> {
  const team = await read.teams.byId(teamId);
  if (team === null || !areVolumesDue(team.watch, now)) return [];
  const due = await keptVolumes(read, teamId);
  const isFree = await Promise.all(due.map((volume) => isOnNoDeployment(read, volume)));
  return due.filter((_, index) => isFree[index]);
}

/** Checks again with the team locked, in the transaction that begins the deletion. @throws {VolumesAreKept} */
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

/**
 * Sends the due mail. Returns the updated watch, for the caller to write, and the time of the next check, which is
 * infinite without volumes. `team` was read by id in this transaction.
 */
export async function watchVolumes(
  deps: Pick<Deps, 'clock' | 'random' | 'options'>,
  tx: Transaction,
  team: TeamRecord,
  { at: now, balanceMicroUsd }: BalanceReading,
): Promise<{ watch: BalanceWatch; nextAt: number }> {
  const volumes = await keptVolumes(tx, team.id);
  if (volumes.length === 0) return { watch: team.watch, nextAt: Number.POSITIVE_INFINITY };
  const policy = deps.options.billing.zeroBalance.volumes;
  const notice = dueNotice(team.watch, policy, now);
  if (notice === null) return { watch: team.watch, nextAt: nextNoticeAt(team.watch, policy, now) };
  const { deleteAt, noticeMs } = notice;
  const watch = { ...team.watch, volumesDeleteAt: deleteAt, volumesNoticeMs: noticeMs };
  const mail = { team, volumes, balanceMicroUsd, deleteAt };
  await mailManagers(deps, tx, team, {
    class: 'billing',
    kind: noticeMs === 0 ? 'volumes_deleted' : 'volumes_frozen',
    dedupeKey: `volumes:${team.id}:${deleteAt}:${noticeMs}`,
    ...(noticeMs === 0 ? volumesDeletedMessage(mail) : volumesFrozenMessage(mail)),
  });
  return { watch, nextAt: nextNoticeAt(watch, policy, now) };
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

/** A mail that is due. It says that the volumes are deleted at `deleteAt`, in `noticeMs`; 0: they are deleted now. */
export interface VolumeNotice {
  deleteAt: number;
  noticeMs: number;
}

/** A mail up to this late keeps the announced time of deletion. */
const LATE_MS = 3_600_000;

/**
 * The mail that is due, or null. `keepMs` counts from the first mail. Volumes are not deleted before the announced
 * time, nor sooner after a mail than `noticesMs` says. A late mail therefore delays the deletion.
 */
export function dueNotice(watch: BalanceWatch, policy: VolumePolicy, now: number): VolumeNotice | null {
  const { exhaustedAt, volumesDeleteAt, volumesNoticeMs } = watch;
  if (exhaustedAt === null) return null;
  if (volumesDeleteAt === null || volumesNoticeMs === null)
    return { deleteAt: Math.max(now, exhaustedAt) + policy.keepMs, noticeMs: policy.keepMs };
  const next = noticeAfter(volumesNoticeMs, policy);
  if (next === undefined || now < volumesDeleteAt - next) return null;
  const isLate = now + next - volumesDeleteAt > LATE_MS;
  return { deleteAt: isLate ? now + next : volumesDeleteAt, noticeMs: next };
}

function noticeAfter(volumesNoticeMs: number, { noticesMs }: VolumePolicy): number | undefined {
  return [...noticesMs, 0].sort((a, b) => b - a).find((ms) => ms < volumesNoticeMs);
}

/** When the next mail or the deletion is due. The deletion is retried every round until no volume is left. */
function nextNoticeAt(
  { volumesDeleteAt, volumesNoticeMs }: BalanceWatch,
  policy: VolumePolicy,
  now: number,
): number {
  if (volumesDeleteAt === null || volumesNoticeMs === null) return now;
  return volumesDeleteAt - (noticeAfter(volumesNoticeMs, policy) ?? 0);
}

/** Whether the last mail was sent and the announced time has passed. */
export function areVolumesDue(watch: BalanceWatch, now: number): boolean {
  const { exhaustedAt, volumesDeleteAt, volumesNoticeMs } = watch;
  return exhaustedAt !== null && volumesDeleteAt !== null && volumesNoticeMs === 0 && now >= volumesDeleteAt;
}
