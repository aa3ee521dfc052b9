import type { MaintenanceWindow } from '../../contract/extensions.ts';
import type { Offer } from '../catalog/catalog.ts';
import {
  type CordonReader,
  type CordonRecord,
  type CordonSubject,
  concerns,
  isActive,
  isSame,
  isTrialDue,
} from '../model/cordon.ts';
import { markOf } from '../model/marks.ts';
import type { Transaction } from '../model/store.ts';

/** The cordons that are in force. With `instanceId`, without the one whose trial is that instance. */
export async function activeCordons(
  { cordons }: { cordons: CordonReader },
  now: number,
  instanceId?: string,
): Promise<CordonRecord[]> {
  return (await cordons.list()).filter(
    (cordon) => isActive(cordon, now) && (instanceId === undefined || cordon.refusals?.trial !== instanceId),
  );
}

/** The cordons of hosts and offers of a platform that are out of placement because they refused creates. */
export async function outOfPlacement(
  { cordons }: { cordons: CordonReader },
  platform: string,
): Promise<CordonRecord[]> {
  return (await cordons.list()).filter(
    (cordon) => cordon.platform === platform && typeof cordon.refusals?.outAt === 'number',
  );
}

/**
 * Makes the create of an instance the trial of a subject, if one is due. Of concurrent creates one gets it; for all
 * others the subject stays out of placement.
 */
export async function takeTrial(
  tx: Pick<Transaction, 'cordons' | 'marks'>,
  subject: CordonSubject & { platform: string },
  instanceId: string,
  now: number,
): Promise<void> {
  const findDue = async () =>
    (await tx.cordons.list()).find((cordon) => isSame(cordon, subject) && isTrialDue(cordon, now));
  if ((await findDue()) === undefined) return;
  await tx.marks.get(markOf(subject.platform, 'placing'));
  const due = await findDue();
  if (due === undefined || due.refusals === null) return;
  await tx.cordons.remove(due.id);
  const trialAt = now + due.refusals.backoffMs;
  await tx.cordons.insert({ ...due, refusals: { ...due.refusals, trial: instanceId, trialAt } });
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
