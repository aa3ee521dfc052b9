import type { Log } from '../../ports/log.ts';
import type { Store } from '../ports/store.ts';
import type { Providers } from './provider.ts';

/**
 * Tells of each provider that something is left at and that the configuration does not have any more. What is there is
 * kept: it shows as it was seen last, a deployment is not billed from then on, and what the user ends is cleaned up once
 * the provider is back.
 */
export async function tellOfMissingProviders({
  store: { read },
  providers,
  log,
}: {
  store: Store;
  providers: Providers;
  log: Log;
}): Promise<void> {
  const left = new Map<string, { deployments: number; volumes: number }>();
  const entry = (id: string) => left.get(id) ?? { deployments: 0, volumes: 0 };
  for (const { providerId, count } of await read.deployments.countToTend())
    left.set(providerId, { ...entry(providerId), deployments: count });
  for (const { providerId, count } of await read.volumes.countByProvider())
    left.set(providerId, { ...entry(providerId), volumes: count });
  for (const [provider, counts] of left)
    if (providers.get(provider) === undefined)
      log.error(
        { provider, ...counts },
        'the configuration does not have a provider at which something is left, and which may cost: put it back, or clean up there',
      );
}
