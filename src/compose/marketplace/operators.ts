import { hostname } from 'node:os';
import { packageVersion } from '../../config/package-root.ts';
import { createConsole } from '../../marketplace/console/app.ts';
import { createOperatorApp, type OperatorDeps } from '../../marketplace/http/operator/app.ts';
import { isInStock } from '../../marketplace/offers/to-offer.ts';
import type { KnownProviders } from '../../marketplace/operate/views/providers.ts';
import type { LiveProviders } from '../../marketplace/providers/create-providers.ts';
import type { ProviderWorkers } from '../../marketplace/sync/provider-workers.ts';
import { Operators } from '../../operator-kit/keys.ts';
import type { Certificates } from '../../runtime/certificates.ts';

export interface MarketplaceOperators {
  operators: Operators;
  /** The operators' apps on the admin listener, by path. */
  apps: {
    '/operator': ReturnType<typeof createOperatorApp>;
    '/console': ReturnType<typeof createConsole>['app'];
  };
  /** Ends the streams of open pages, for shutdown. */
  close(): void;
}

interface Parts extends Omit<OperatorDeps, 'operators' | 'providers'> {
  providers: LiveProviders;
  workers: ProviderWorkers;
  certificates: Certificates;
  nextId: () => string;
}

/** Composes the operators' part of a marketplace's admin listener. It is loaded only with that listener. */
export function composeOperators({
  providers,
  workers,
  certificates,
  nextId,
  ...parts
}: Parts): MarketplaceOperators {
  const { store, clock } = parts;
  const operators = new Operators({ store, clock, log: parts.log, command: 'berth marketplace operators' });
  const deps: OperatorDeps = {
    ...parts,
    operators,
    providers: () => factsOf(providers, workers, certificates),
  };
  const console = createConsole({ ...deps, version: packageVersion(), server: hostname() });
  const operator = createOperatorApp(deps, { nextId });
  return {
    operators,
    apps: { '/operator': operator, '/console': console.app },
    close: () => console.close(),
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
          problems: [...providers.problemsOf(id), ...workers.problemsOf(id)],
        },
      ];
    }),
  );
}
