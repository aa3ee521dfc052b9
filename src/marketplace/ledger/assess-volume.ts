import { DAY_MS } from '../../ports/clock.ts';
import type { Deps } from '../deps.ts';
import { newId } from '../model/names.ts';
import type { Transaction } from '../model/store.ts';
import { accrued } from './balance.ts';

const SPEND_DAYS = 30;
/** The setting that stores the midnight of the last assessed day. */
const ASSESSED = 'volume-discounts-assessed';

/**
 * Sets each team's volume discount once per UTC day, from its usage in the 30 days before, posted or not. Repeated runs
 * change nothing.
 */
export async function assessVolumeDiscounts(
  deps: Pick<Deps, 'store' | 'random' | 'options'>,
  now: number,
): Promise<void> {
  const { store } = deps;
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  if ((await store.read.settings.get(ASSESSED)) === String(midnight)) return;
  for (const { id } of await store.read.teams.list())
    await store.transact((tx) => assessTeam(deps, tx, id, midnight));
  await store.transact((tx) => tx.settings.put(ASSESSED, String(midnight)));
}

/** The highest percentage earned by this spending; 0: none. */
export function volumePercentage(
  tiers: Deps['options']['billing']['volumeDiscounts'],
  spentMicroUsd: number,
): number {
  const earned = tiers.filter(({ spendMicroUsd }) => spentMicroUsd >= spendMicroUsd);
  return Math.max(0, ...earned.map(({ percentage }) => percentage));
}

async function assessTeam(
  { random, options }: Pick<Deps, 'random' | 'options'>,
  tx: Transaction,
  teamId: string,
  midnight: number,
): Promise<void> {
  // Locks the team, so that two concurrent runs do not both add a discount.
  if ((await tx.teams.byId(teamId)) === null) return;
  const posted = await tx.ledger.usageOf(teamId, midnight - SPEND_DAYS * DAY_MS, midnight);
  const spent = posted + (await accrued(tx, teamId, midnight));
  const percentage = volumePercentage(options.billing.volumeDiscounts, spent);
  const former = (await tx.discounts.ofTeam(teamId)).find(
    ({ source, endsAt }) => source === 'volume' && endsAt === null,
  );
  if ((former?.percentage ?? 0) === percentage) return;
  if (former !== undefined)
    await tx.discounts.update({ ...former, endsAt: Math.max(midnight, former.startsAt) });
  if (percentage > 0)
    await tx.discounts.insert({
      id: newId(random, 'disc'),
      teamId,
      source: 'volume',
      percentage,
      startsAt: midnight,
      endsAt: null,
    });
}
