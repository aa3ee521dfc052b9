import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { defaultOptions } from '../model/options.ts';
import { noMarkups } from '../providers/markup.ts';
import { configurationOf, gpuTypes, profileOf } from '../providers/offer.fixture.ts';
import type { ProviderProfile } from '../providers/profile.ts';
import type { CatalogOffer, Provider, Providers } from '../providers/provider.ts';
import { toCatalogOffer } from '../providers/to-catalog-offer.ts';
import { OfferBoard } from './offer-board.ts';

/** Pages are built from memory, so the client is never called. */
const NO_CLIENT = {} as Provider['client'];

type Changes = Parameters<typeof configurationOf>[0];

/** An offer of a provider. `stock`: the regions where it can be deployed now. */
export interface Sold {
  provider?: string;
  stock?: readonly string[];
  isWithdrawn?: boolean;
  changes?: Changes;
}

/** A board with these offers. The default offer is an H100 for 2 USD in `eu-one` of provider-x. */
export function boardOf(sold: readonly Sold[], { profiles = [] }: { profiles?: ProviderProfile[] } = {}) {
  const clock = new VirtualClock();
  const ids = new Set([
    ...profiles.map(({ id }) => id),
    ...sold.map(({ provider = 'provider-x' }) => provider),
  ]);
  const catalogs = new Map(
    [...ids].map((id) => [
      id,
      {
        refreshedAt: clock.now() as number | null,
        offers: new Map<string, CatalogOffer>(),
        volumeLocations: [],
      },
    ]),
  );
  const byId = new Map([...ids].map((id) => [id, profileOf([], id)]));
  for (const profile of profiles) byId.set(profile.id, profile);
  const profileNamed = (id: string): ProviderProfile => byId.get(id) ?? profileOf([], id);
  const put = (id: string, offers: Map<string, CatalogOffer>) => {
    const catalog = catalogs.get(id);
    if (catalog === undefined) throw new Error(`there is no ${id}`);
    catalog.offers = offers;
  };
  for (const id of ids)
    put(
      id,
      offersOf(
        profileNamed(id),
        sold.filter(({ provider = 'provider-x' }) => provider === id),
      ),
    );
  const providers: Providers = {
    ids: () => [...ids],
    get: (id) => {
      const catalog = catalogs.get(id);
      if (catalog === undefined) return undefined;
      return {
        id,
        profile: profileNamed(id),
        catalog,
        client: NO_CLIENT,
        sshProbe: null,
        markups: noMarkups,
      };
    },
  };
  const counts = { answer: async (): Promise<{ gpuType: string; count: number }[]> => [], asked: 0 };
  const store = {
    read: {
      pauses: { list: async () => [] },
      deployments: {
        countByGpuType: () => {
          counts.asked++;
          return counts.answer();
        },
      },
    },
  };
  const board = new OfferBoard({ providers, clock, options: defaultOptions, store: store as never });
  return { board, providers, clock, catalogs, counts, put };
}

export function offersOf(profile: ProviderProfile, sold: readonly Sold[]): Map<string, CatalogOffer> {
  return new Map(
    sold.map(({ stock = ['eu-one'], isWithdrawn, changes = {} }, index) => {
      const offer = toCatalogOffer(configurationOf({ id: `offer-${index}`, ...changes }), {
        profile,
        gpuTypes,
        markups: noMarkups,
        inStockRegions: stock,
        onProblem: () => undefined,
      });
      if (offer === null) throw new Error('an offer of the test is left out');
      return [offer.offerId, { ...offer, ...(isWithdrawn !== undefined && { isWithdrawn }) }];
    }),
  );
}

/** A configuration without a GPU. */
export const cpu: Changes = {
  gpu_count: undefined,
  gpu_type: undefined,
  gpu_memory_gb: undefined,
  price_per_hour: 0.1,
  os_options: ['ubuntu-24.04', 'ubuntu-24.04-cuda-13.0'],
};
