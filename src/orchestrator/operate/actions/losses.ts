import type { InstanceStatus } from '../../../contract/instance.ts';
import { audited } from '../../../operators/audit.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import { markOf, type Reader, type Store } from '../../model/store.ts';
import { countLosses, type LossCount } from '../../platform/loss-cap.ts';
import type { LossCapOptions } from '../../platform/options.ts';
import { ActionRefused } from './refused.ts';

/** An instance whose loss is held back by the cap. */
export interface HeldInstance {
  id: string;
  status: InstanceStatus;
  region: string;
  platform: string;
}

/** The losses of a platform compared with its cap, and what is held back or frozen there. */
export interface PlatformLosses extends LossCount {
  platform: string;
  /** Since when the platform does not answer or its listing is not trusted. Null: it is trusted. */
  frozenSince: number | null;
  /** Since when too many of its volumes are missing. Null: they are not. */
  volumesDoubtedSince: number | null;
  held: HeldInstance[];
}

/** A limit above any server's open work, to read all of it. */
const ALL_WORK = 1_000_000;

export async function readLosses(
  read: Reader,
  cap: LossCapOptions,
  platforms: readonly string[],
  now: number,
): Promise<PlatformLosses[]> {
  const heldWork = (await read.work.list(ALL_WORK)).filter(({ isHeld }) => isHeld);
  const rows = await read.instances.byIds(heldWork.map(({ resourceId }) => resourceId));
  const held = rows.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  return Promise.all(
    platforms.map(async (platform) => ({
      platform,
      ...(await countLosses(read, cap, now, { platform })),
      frozenSince: await read.marks.get(markOf(platform, 'platform_down_since')),
      volumesDoubtedSince: await read.marks.get(markOf(platform, 'volumes_doubted_since')),
      held: held
        .filter((row) => row.platform === platform)
        .map(({ id, status, region }) => ({ id, status, region, platform })),
    })),
  );
}

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
}

/**
 * Accepts losses for `forMs`: any number of instances that the platforms no longer have are ended. Returns the end of
 * that time, in milliseconds since the epoch.
 */
export async function acceptLosses(
  deps: Deps,
  actor: Actor,
  { platforms, forMs }: { platforms: readonly string[]; forMs: number },
): Promise<number> {
  return accept(deps, actor, 'losses.accept', platforms, forMs);
}

/** The effect of a thaw, planned or done. */
export interface Thaw {
  platform: string;
  /** The texts of its alarms. */
  problems: string[];
  effect: string;
  /** Until when losses are accepted, in milliseconds since the epoch. Null: a dry run; nothing has changed. */
  acceptedUntil: number | null;
}

/**
 * Accepts the listing of a platform although machines are missing: these are then ended as lost. A platform that does
 * not answer cannot be thawed, since nothing is proved about its machines.
 *
 * @throws {ActionRefused}
 */
export async function thawPlatform(
  deps: Deps,
  actor: Actor,
  { platform, forMs, isDone }: { platform: string; forMs: number; isDone: boolean },
): Promise<Thaw> {
  const alarms = (await deps.store.read.alarms.list()).filter((alarm) => alarm.platform === platform);
  const down = alarms.find(({ kind }) => kind === 'platform_down');
  const problems = alarms.filter(({ kind }) => THAWED.has(kind)).map(({ text }) => text);
  const refusal =
    down !== undefined
      ? `The platform ${platform} does not answer, so the state of its machines is unknown; it thaws by itself when it answers: ${down.text}`
      : problems.length === 0
        ? `The platform ${platform} is not frozen.`
        : undefined;
  if (refusal !== undefined && !isDone) throw new ActionRefused(refusal);
  const effect =
    'its listing is accepted: within a minute the instances and volumes that it no longer has are ended as lost, and stay ended even if they reappear';
  if (!isDone) return { platform, problems, effect, acceptedUntil: null };
  const acceptedUntil = await accept(deps, actor, 'platform.thaw', [platform], forMs, refusal);
  return { platform, problems, effect, acceptedUntil };
}

const THAWED: ReadonlySet<string> = new Set(['platform_suspect', 'volumes_suspect', 'losses_held']);

async function accept(
  { store, clock }: Deps,
  actor: Actor,
  action: string,
  platforms: readonly string[],
  forMs: number,
  refusal?: string,
): Promise<number> {
  const until = clock.now() + forMs;
  const detail = { until: new Date(until).toISOString() };
  await audited({ store, clock }, actor, { action, subject: platforms.join(' '), detail }, (inside) =>
    inside.transact(async (tx) => {
      if (refusal !== undefined) throw new ActionRefused(refusal);
      for (const platform of platforms) await tx.marks.put(markOf(platform, 'losses_accepted_until'), until);
    }),
  );
  return until;
}
