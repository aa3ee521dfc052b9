import type { MaintenanceWindow } from '../../contract/extensions.ts';
import type { Offer } from '../catalog/catalog.ts';
import { type CordonReader, type CordonRecord, concerns, isActive } from '../model/cordon.ts';

/** The cordons that are in force. */
export async function activeCordons(
  { cordons }: { cordons: CordonReader },
  now: number,
): Promise<CordonRecord[]> {
  return (await cordons.list()).filter((cordon) => isActive(cordon, now));
}

/** The cordons that prevent an offer from being sold in a region. With `host`, also those on that host. */
export function cordonsOn(
  cordons: readonly CordonRecord[],
  { offer, region, host }: { offer: Pick<Offer, 'id' | 'platform'>; region: string; host?: string | null },
): CordonRecord[] {
  const wanted = { region, offer: offer.id, platform: offer.platform, host };
  return cordons.filter((cordon) => concerns(cordon, wanted));
}

/** The cordoned hosts of a platform. */
export function cordonedHosts(cordons: readonly CordonRecord[], platform: string): string[] {
  return cordons.flatMap((cordon) =>
    cordon.kind === 'host' && cordon.platform === platform ? [cordon.name] : [],
  );
}

/** Whether clients see the offer in that region as under maintenance. */
export function isInMaintenance(cordons: readonly CordonRecord[], offer: Offer, region: string): boolean {
  const announced = cordons.filter(({ isMaintenance }) => isMaintenance);
  return cordonsOn(announced, { offer, region }).length > 0;
}

/** The maintenance windows that clients of the offer see, current and future, with their regions. */
export function maintenanceWindows(cordons: readonly CordonRecord[], offer: Offer): MaintenanceWindow[] {
  return cordons.flatMap((cordon) => {
    const regions = offer.placements
      .map(({ region }) => region)
      .filter((region) => isInMaintenance([cordon], offer, region));
    if (regions.length === 0) return [];
    const { since, until, reason } = cordon;
    return [
      {
        starts_at: new Date(since).toISOString(),
        ...(until !== null && { ends_at: new Date(until).toISOString() }),
        regions,
        ...(reason !== null && { reason }),
      },
    ];
  });
}
