import type { VolumePolicy } from '../options.ts';
import type { BalanceWatch } from '../records/people.ts';

/** A mail that is due: that the volumes are deleted at `deleteAt`, `noticeMs` from now. 0: they are deleted now. */
export interface VolumeNotice {
  deleteAt: number;
  noticeMs: number;
}

/** A mail that is late by no more than this still says the time that was said before. */
const LATE_MS = 3_600_000;

/**
 * The next mail about the volumes of a team whose balance is used up; null: none is due. The days count from the first of
 * these mails, which is sent after the balance has reached zero. Nothing is deleted before the time that a mail said, nor
 * sooner after it than `noticesMs` says: a mail that could not be sent in time, because no server ran, puts it off.
 */
export function dueNotice(watch: BalanceWatch, policy: VolumePolicy, now: number): VolumeNotice | null {
  const { exhaustedAt, volumesDeleteAt = null, volumesNoticeMs = null } = watch;
  if (exhaustedAt === null) return null;
  if (volumesDeleteAt === null || volumesNoticeMs === null)
    return { deleteAt: Math.max(now, exhaustedAt) + policy.keepMs, noticeMs: policy.keepMs };
  const next = [...policy.noticesMs, 0].sort((a, b) => b - a).find((ms) => ms < volumesNoticeMs);
  if (next === undefined || now < volumesDeleteAt - next) return null;
  const isLate = now + next - volumesDeleteAt > LATE_MS;
  return { deleteAt: isLate ? now + next : volumesDeleteAt, noticeMs: next };
}

/** Whether all was mailed, and the time that was said is over. */
export function areVolumesDue(watch: BalanceWatch, now: number): boolean {
  const { exhaustedAt, volumesDeleteAt = null, volumesNoticeMs = null } = watch;
  return exhaustedAt !== null && volumesDeleteAt !== null && volumesNoticeMs === 0 && now >= volumesDeleteAt;
}
