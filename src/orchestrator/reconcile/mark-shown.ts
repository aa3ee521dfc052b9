import { amend } from '../instances/transition.ts';
import { CREATE_IS_OPEN, type PlatformResource } from '../ports/platform-resource.ts';
import type { VolumeRecord } from '../volumes/volume-record.ts';
import type { ReconcileContext } from './context.ts';
import { lockInstances } from './lock-rows.ts';
import { hiddenForMs } from './visibility.ts';

type Deps = Pick<ReconcileContext, 'store' | 'clock' | 'driver' | 'options'>;

/** Rows that one transaction locks. */
const AT_ONCE = 100;

/**
 * Whether a listing that began at `begunAt`, and shows the resource, tells something new: it was answered so lately
 * that a `gone` would still prove nothing. A create that is open work tells so by itself.
 */
export function isShownFirst(
  { createOpenUntil }: Pick<PlatformResource, 'createOpenUntil'>,
  begunAt: number,
  context: Pick<Deps, 'driver' | 'options'>,
): boolean {
  if (createOpenUntil === null || createOpenUntil === CREATE_IS_OPEN) return false;
  return begunAt < createOpenUntil + hiddenForMs(context);
}

/** The platform has listed the machines of these instances: from now on their absence can be proved. */
export async function markMachinesShown({ store, clock }: Deps, ids: readonly string[]): Promise<void> {
  for (let begin = 0; begin < ids.length; begin += AT_ONCE)
    await store.transact(async (tx) => {
      const records = await lockInstances(tx, ids.slice(begin, begin + AT_ONCE));
      for (const record of records.values())
        if (record.createOpenUntil !== null && record.createOpenUntil !== CREATE_IS_OPEN)
          await amend(tx, record, clock.now(), { createOpenUntil: null });
    });
}

/** {@link markMachinesShown}, for a volume. */
export async function markVolumeShown({ store }: Pick<Deps, 'store'>, { id }: VolumeRecord): Promise<void> {
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(id);
    if (record === null || record.createOpenUntil === null || record.createOpenUntil === CREATE_IS_OPEN)
      return;
    await tx.volumes.update({ ...record, createOpenUntil: null });
  });
}
