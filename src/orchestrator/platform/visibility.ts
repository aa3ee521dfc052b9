import { clockMarginMs } from '../../work/lease-time.ts';
import { amend } from '../instances/transition.ts';
import type { Presence } from '../model/platform-driver.ts';
import { CREATE_IS_OPEN, type PlatformResource } from '../model/platform-resource.ts';
import type { VolumeRecord } from '../model/records.ts';
import { lockInstances } from '../model/rows.ts';
import type { ReconcileContext } from './context.ts';

// A platform may show a new machine or volume only after some time (`createVisibleWithinMs`). The end of that time is
// stored in the resource's row, since it must survive the work, the process and a restore.

/** Computes the new `createOpenUntil` of a row from its current value. */
export type VisibilityUpdate = (known: number | null) => number | null;

/** A presence, and when the read began. */
export type Observation<T> = Presence<T> & { observedAt: number };

/**
 * The update after a read by a step other than the create. A resource that is observed needs no further wait. The step
 * began after the last lease of a create ended, so the create sent and received nothing after the read.
 */
export function afterObservation({
  answer,
  observedAt,
}: Pick<Observation<unknown>, 'answer' | 'observedAt'>): VisibilityUpdate {
  if (answer === 'observed') return () => null;
  return (known) => (known === null ? null : Math.min(known, observedAt));
}

/**
 * How long after `createOpenUntil` a `gone` proves nothing. Another server, with a clock some seconds behind, may have
 * set that time. With 0, the order of the calls is the proof, and no clock matters.
 */
function hiddenForMs({ driver, options }: Pick<ReconcileContext, 'driver' | 'options'>): number {
  const { createVisibleWithinMs } = driver.manifest;
  return createVisibleWithinMs === 0 ? 0 : createVisibleWithinMs + clockMarginMs(options);
}

/**
 * How long to wait before the next read, in milliseconds, if a `gone` of a read that began at `observedAt` proves
 * nothing. 0 if it is proof. The start of the read counts, since a slow read may have begun before the platform had to
 * show the resource.
 */
export function mayAppearForMs(
  context: Pick<ReconcileContext, 'clock' | 'driver' | 'options'>,
  createOpenUntil: number | null,
  observedAt: number,
): number {
  if (createOpenUntil === null) return 0;
  const hiddenMs = hiddenForMs(context);
  if (observedAt >= createOpenUntil + hiddenMs) return 0;
  // The limit prevents a longer wait after the clock was set back.
  return Math.min(hiddenMs, Math.max(1, createOpenUntil + hiddenMs - context.clock.now()));
}

type Deps = Pick<ReconcileContext, 'store' | 'clock' | 'driver' | 'options'>;
type Shown = Pick<PlatformResource, 'createOpenUntil'>;

/** Rows that one transaction locks. */
const AT_ONCE = 100;

/**
 * Whether a listing that began at `begunAt` and shows the resource is news: without it, a `gone` would still prove
 * nothing. An open create notices the resource itself.
 */
export function isNewlyVisible(
  { createOpenUntil }: Shown,
  begunAt: number,
  context: Pick<Deps, 'driver' | 'options'>,
): boolean {
  if (createOpenUntil === null || createOpenUntil === CREATE_IS_OPEN) return false;
  return begunAt < createOpenUntil + hiddenForMs(context);
}

/**
 * The new `createOpenUntil` of a resource that a listing has shown: reads that begin from now on can prove that it is
 * gone. A read that is under way may have found nothing before the platform showed the resource. Undefined if there is
 * no change.
 */
function onceListed({ createOpenUntil }: Shown, { clock, driver }: Pick<Deps, 'clock' | 'driver'>) {
  if (createOpenUntil === null || createOpenUntil === CREATE_IS_OPEN) return undefined;
  const shownAt = clock.now() - driver.manifest.createVisibleWithinMs;
  return shownAt < createOpenUntil ? shownAt : undefined;
}

/** Records that the platform has listed the machines of these instances. */
export async function markMachinesVisible(deps: Deps, ids: readonly string[]): Promise<void> {
  for (let begin = 0; begin < ids.length; begin += AT_ONCE)
    await deps.store.transact(async (tx) => {
      const records = await lockInstances(tx, ids.slice(begin, begin + AT_ONCE));
      for (const record of records.values()) {
        const createOpenUntil = onceListed(record, deps);
        if (createOpenUntil !== undefined) await amend(tx, record, deps.clock.now(), { createOpenUntil });
      }
    });
}

/**
 * Stores the current hosts of these instances. Losses are counted by host, and a host's answer can prove an end. A lost
 * instance stays counted for the host that lost it, even if it reappears on another, until it is deleted: the host that
 * then has its machine must prove the removal. A destroyed instance without open work has nothing left on a host.
 */
export async function recordHosts(
  { store, clock }: Deps,
  hosts: readonly (readonly [id: string, host: string])[],
): Promise<void> {
  for (let begin = 0; begin < hosts.length; begin += AT_ONCE) {
    const batch = new Map(hosts.slice(begin, begin + AT_ONCE));
    await store.transact(async (tx) => {
      for (const [id, record] of await lockInstances(tx, batch.keys())) {
        const isRemoved = record.status === 'DESTROYED' && (await tx.work.of(id)) === null;
        const isCountedThere = record.destroyOrder === null && (await tx.losses.includes(id));
        if (!isRemoved && !isCountedThere)
          await amend(tx, record, clock.now(), { host: batch.get(id) ?? record.host });
      }
    });
  }
}

/** Like {@link markMachinesVisible}, for a volume. */
export async function markVolumeVisible(deps: Deps, { id }: VolumeRecord): Promise<void> {
  await deps.store.transact(async (tx) => {
    const record = await tx.volumes.byId(id);
    const createOpenUntil = record === null ? undefined : onceListed(record, deps);
    if (record !== null && createOpenUntil !== undefined)
      await tx.volumes.update({ ...record, createOpenUntil });
  });
}
