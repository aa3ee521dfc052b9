import type { OperatorDeps } from '../../marketplace/http/operator/app.ts';
import { isInStock } from '../../marketplace/offers/to-offer.ts';
import type { KnownProviders } from '../../marketplace/operate/views/providers.ts';
import type { LiveProviders } from '../../marketplace/providers/create-providers.ts';
import type { ProviderWorkers } from '../../marketplace/sync/provider-workers.ts';
import type { Certificates } from '../../runtime/certificates.ts';

export interface OperatorParts extends Omit<OperatorDeps, 'operators' | 'providers' | 'sellers'> {
  providers: LiveProviders;
  workers: ProviderWorkers;
  certificates: Certificates;
  nextId: () => string;
}

/** The dependencies of the marketplace's operator API, except for how operators are authenticated. */
export function operatorDepsOf({
  providers,
  workers,
  certificates,
  nextId: _nextId,
  ...parts
}: OperatorParts): Omit<OperatorDeps, 'operators'> {
  return {
    ...parts,
    sellers: providers,
    providers: () => factsOf(providers, workers, certificates),
  };
}

/** This process's knowledge of each provider. */
function factsOf(
  providers: LiveProviders,
  workers: ProviderWorkers,
  certificates: Certificates,
): KnownProviders {
  const endOf = new Map(
    certificates.list().flatMap(({ use, name, endsAt }) => (use === 'provider' ? [[name, endsAt]] : [])),
  );
  return new Map(
    providers.ids().map((id) => {
      const { refreshedAt = null, offers = new Map() } = providers.get(id)?.catalog ?? {};
      const inStock = [...offers.values()].filter(isInStock);
      return [
        id,
        {
          catalogReadAt: refreshedAt,
          offers: offers.size,
          offersInStock: inStock.length,
          certificateEndsAt: endOf.get(id) ?? null,
          problems: [...providers.problemsOf(id), ...(workers.of(id)?.problems ?? [])],
        },
      ];
    }),
  );
}
