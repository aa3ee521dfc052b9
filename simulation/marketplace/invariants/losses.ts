import { activeStatuses } from '../../../src/marketplace/contract/deployment.ts';
import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import { LOSS_WINDOW_MS } from '../../../src/marketplace/providers/loss-cap.ts';
import { hold } from '../../kernel/violation.ts';
import type { MarketBase } from '../providers/market-base.ts';

/** A deployment or volume that was ended because its provider denied it, although it exists. */
export interface WrongLoss {
  id: string;
  providerId: string;
  at: number;
}

/** What the inspector has seen committed. */
interface KnownResources {
  deployments: ReadonlyMap<string, { record: DeploymentRecord }>;
  volumes: ReadonlyMap<string, { record: VolumeRecord }>;
  wrongLosses: readonly WrongLoss[];
}

/** I23: a provider that denies everything it has ends no more of it at once than the cap on losses allows. */
export function lossesAreCapped(known: KnownResources, world: MarketBase, providerId: string): void {
  const { share, least } = world.scenario.options.maxLosses;
  const since = world.scheduler.now - LOSS_WINDOW_MS + 2 * world.clockErrorMs;
  const lost = known.wrongLosses.filter((loss) => loss.providerId === providerId && loss.at > since);
  const cap = Math.max(least, Math.floor(share * knownSince(known, providerId, since)));
  hold(
    'I23',
    lost.length <= cap,
    () => `${providerId} denied what it has, and ${lost.map(({ id }) => id)} ended: more than ${cap}`,
    lost.map(({ id }) => id),
  );
}

/** How many deployments and volumes of a provider existed at any time since then. */
function knownSince({ deployments, volumes }: KnownResources, providerId: string, since: number): number {
  const isOf = ({ record }: { record: { providerId: string } }) => record.providerId === providerId;
  const there = [...deployments.values()].filter(
    ({ record }) => activeStatuses.includes(record.status) || (record.stoppedAt ?? 0) >= since,
  );
  const stored = [...volumes.values()].filter(
    ({ record }) => record.status !== 'deleted' || (record.deletedAt ?? 0) >= since,
  );
  return there.filter(isOf).length + stored.filter(isOf).length;
}
