import { ApiError } from '../contract/errors.ts';
import type { Provider } from './provider.ts';

/**
 * Refuses a request while no process has read the provider's catalog into the database.
 *
 * @throws {ApiError} UNAVAILABLE, which asks the client to retry
 */
export function assertCatalogKnown({ profile, catalog }: Pick<Provider, 'profile' | 'catalog'>): void {
  if (catalog.refreshedAt !== null) return;
  throw new ApiError('UNAVAILABLE', `The catalog of ${profile.name} has not been read yet; try again.`);
}
