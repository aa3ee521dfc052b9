import type { VolumeRecord } from '../../model/volume-record.ts';
import { hasTimedOut } from '../../volumes/intents.ts';
import { sizeLimits } from '../../volumes/limits.ts';
import type { VolumeChange } from '../../volumes/snapshot.ts';
import type { VolumeContext } from './step.ts';

/** The size that counts as the provider's. One above its limit is a mistake, unless it was asked for. */
export function credibleGb(
  { volumeProvider }: Pick<VolumeContext, 'volumeProvider'>,
  { region, sizeGb, action }: VolumeRecord,
  shownGb: number,
): number {
  const { maxGb } = sizeLimits(volumeProvider, region);
  return shownGb <= Math.max(sizeGb, action?.toSizeGb ?? 0, maxGb) ? shownGb : sizeGb;
}

/**
 * The sizes of a volume that its provider shows with `observedGb`. Its user sees and pays the size that was last asked
 * for, as far as the provider shows it. A resize that was given up may still take effect.
 */
export function sizesAfter(
  context: Pick<VolumeContext, 'volumeProvider' | 'options'>,
  record: VolumeRecord,
  observedGb: number,
  now: number,
) {
  const resize = record.action?.kind === 'resize' ? record.action : null;
  const shownGb = credibleGb(context, record, observedGb);
  const askedGb = resize?.toSizeGb ?? record.resizeGivenUpGb ?? 0;
  const isResized = resize !== null && shownGb >= askedGb;
  const isOpen = resize !== null && !isResized && !hasTimedOut(resize, now, context.options);
  const sizeGb = Math.max(record.sizeGb, Math.min(shownGb, askedGb));
  const after = {
    sizeGb,
    resizeGivenUpGb: isOpen ? record.resizeGivenUpGb : askedGb > sizeGb ? askedGb : null,
    providerSizeGb: observedGb === sizeGb ? null : observedGb,
  };
  const change: VolumeChange = {
    ...(after.sizeGb !== record.sizeGb && { sizeGb }),
    ...(after.resizeGivenUpGb !== record.resizeGivenUpGb && { resizeGivenUpGb: after.resizeGivenUpGb }),
    ...(after.providerSizeGb !== record.providerSizeGb && { providerSizeGb: after.providerSizeGb }),
    ...(isResized && resize.name !== undefined && { name: resize.name }),
  };
  return { change, isResizeOver: resize !== null && !isOpen };
}
