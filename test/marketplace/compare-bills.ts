import { toMicroUsd } from './price-list.ts';
import type { MarketUser, SevenProviders } from './seven-providers.ts';
import type { Witness } from './witness.ts';

/** What was charged for something, and what it costs by the oracle; both in micro-USD. */
export interface Comparison {
  what: string;
  charged: bigint;
  exact: bigint;
}

/** Holds each balance, each deployment and each volume against the oracle. */
export async function compareBills(
  market: SevenProviders,
  witness: Witness,
  users: readonly MarketUser[],
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const user of users) {
    const { body } = await market.ask('GET', `/api/balance?teamId=${user.teamId}`, { key: user.key });
    const [{ balance }] = body.teams;
    const what = `the balance of ${user.teamId}`;
    comparisons.push({ what, charged: toMicroUsd(balance), exact: witness.balanceOf(user.teamId) });
    for (const known of [...witness.deployments.values()].filter(({ team }) => team === user.teamId))
      comparisons.push({
        what: `${known.id} at ${known.offer.provider} (${known.offer.offerId})`,
        charged: toMicroUsd((await witness.read(user, known.id)).totalCost),
        exact: witness.costOf(known),
      });
  }
  // The API does not show what a volume has cost.
  for (const volume of witness.volumes.values()) {
    const record = await market.life.store.read.volumes.byId(volume.id);
    comparisons.push({
      what: `${volume.volumeId} at ${volume.provider}`,
      charged: BigInt(record?.totalCostMicroUsd ?? -1),
      exact: witness.costOf(volume),
    });
  }
  return comparisons;
}
