import type { Offer } from '../contract/offer.ts';
import type { InstanceType } from '../contract/values.ts';
import type { CatalogOffer } from '../providers/provider.ts';

/** M: Offer, `extras.deployment_type`. */
const DEPLOYMENT_TYPES = {
  SPOT: 'vm',
  DEDICATED: 'vm',
  BARE_METAL: 'baremetal',
  CLUSTER: 'cluster',
} as const satisfies Record<InstanceType, string>;

const DEFAULT_NETWORKING_TYPE = 'public';

/**
 * M: `extras` of an offer and of its deployments: the provider's own, without what it says to Berth. `nvlink` appears only
 * where there are NVLink bridges.
 */
export function shownExtras({
  extras,
  instanceType,
}: Pick<CatalogOffer, 'extras' | 'instanceType'>): Offer['extras'] {
  const { berth: _, nvlink: __, networking_type: networking, ...rest } = extras;
  return {
    ...rest,
    deployment_type: DEPLOYMENT_TYPES[instanceType],
    networking_type:
      typeof networking === 'string' && networking !== '' ? networking : DEFAULT_NETWORKING_TYPE,
  };
}
