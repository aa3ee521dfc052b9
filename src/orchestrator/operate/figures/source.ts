import type { FigureSource, HourOfFigures } from '../../../operator-kit/figures/recorder.ts';
import { startOf } from '../../../operator-kit/figures/recorder.ts';
import { HOUR_MS, toObservation } from '../../../operator-kit/figures/rows.ts';
import type { FigureRow } from '../../../operator-kit/model.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Supply } from '../../capacity/deployable.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { causeOf, type Outcome } from '../../model/history.ts';
import type { PlacedInstances, Store } from '../../model/store.ts';
import { ONLINE_BUCKETS } from '../../model/telemetry.ts';
import { type PlacementView, readCapacity } from '../views/capacity.ts';
import type { CallCounts } from './call-counts.ts';

/** The series of the units of each offer and region, and of how creates ended. */
export const CAPACITY = 'capacity';
export const OUTCOMES = 'outcomes';

/** More outcomes than this in the counted hours are left out. */
const MOST_OUTCOMES = 200_000;

interface Deps {
  store: Pick<Store, 'read'>;
  catalog: Catalog;
  supply: Supply;
  clock: Pick<Clock, 'now'>;
  /** The names of the platforms that this server serves. It samples their offers only. */
  platforms: readonly string[];
  calls: CallCounts;
}

/** The figures of the orchestrator. The subject of each is a platform. */
export function figureSource(deps: Deps): FigureSource {
  const { calls, platforms } = deps;
  return {
    hoursToRecount: 1,
    sample: (hour) => sampleCapacity(deps, hour),
    count: async (from, hour) => countOutcomes(await readOutcomes(deps, from), { platforms, from, hour }),
    take: () => calls.take(),
    putBack: (taken) => calls.putBack(taken),
  };
}

async function sampleCapacity(
  { store: { read }, platforms, ...deps }: Deps,
  hour: number,
): Promise<HourOfFigures[]> {
  const [{ placements }, placed] = await Promise.all([
    readCapacity(read, { ...deps, now: deps.clock.now() }),
    read.instances.countByPlacement(),
  ]);
  const placedIn = Map.groupBy(placed, ({ offerId, region }) => `${offerId} ${region}`);
  return platforms.map((platform) => {
    const own = placements.filter((one) => one.platform === platform);
    const rows = own.map((one) => toCapacityRow(one, placedIn.get(`${one.offer} ${one.region}`) ?? []));
    // The number of samples, by which sums are divided.
    return { how: 'sample', series: CAPACITY, subject: platform, at: hour, rows: [['', '', 1], ...rows] };
  });
}

/** A failed instance, a machine that is being removed and one without a row hold units that are not sold. */
function toCapacityRow(
  { offer, region, units, claimed, failed, without_row, available }: PlacementView,
  placed: readonly PlacedInstances[],
): FigureRow {
  const countOf = (...statuses: readonly string[]): number =>
    placed.filter(({ status }) => statuses.includes(status)).reduce((sum, { count }) => sum + count, 0);
  const broken = Math.min(claimed, failed + countOf('OFFLINE', 'DESTROYING'));
  const earned = placed.find(({ status }) => status === 'ONLINE')?.priceMicroUsdPerHour ?? 0;
  const stopped = countOf('STOPPED');
  return [offer, region, units, claimed - broken, available, stopped, broken + without_row, earned];
}

async function readOutcomes({ store }: Deps, from: number): Promise<Outcome[]> {
  return store.read.history.outcomes({ since: from, limit: MOST_OUTCOMES });
}

interface Counting {
  platforms: readonly string[];
  /** The first hour, and the current one. */
  from: number;
  hour: number;
}

function countOutcomes(outcomes: readonly Outcome[], { platforms, from, hour }: Counting): HourOfFigures[] {
  const found = Map.groupBy(outcomes, ({ at, instance }) =>
    JSON.stringify([instance?.platform, startOf(HOUR_MS, at)]),
  );
  const hours: HourOfFigures[] = [];
  for (let at = from; at <= hour; at += HOUR_MS)
    for (const subject of platforms) {
      const rows = (found.get(JSON.stringify([subject, at])) ?? []).map(toOutcomeRow);
      if (rows.length > 0 || at >= hour - HOUR_MS)
        hours.push({ how: 'replace', series: OUTCOMES, subject, at, rows });
    }
  return hours;
}

function toOutcomeRow(outcome: Outcome): FigureRow {
  const { at, fromStatus, toStatus, instance } = outcome;
  const place = [instance?.offerId ?? '', instance?.region ?? ''];
  if (toStatus === 'ERROR')
    return [...place, fromStatus === 'PROVISIONING' ? 'failed' : 'broke', causeOf(outcome), 1];
  if (toStatus !== 'ONLINE' || instance === null) return [...place, 'deleted', '', 1];
  return [...place, 'online', '', ...toObservation(at - instance.createdAt, ONLINE_BUCKETS)];
}
