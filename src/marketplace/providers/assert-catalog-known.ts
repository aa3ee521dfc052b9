import { ApiError } from '../contract/errors.ts';
import type { Provider } from './provider.ts';

/**
 * What is sold is a fact of the database: only where no process has read the provider's catalog yet, a create cannot be
 * judged.
 *
 * @throws {ApiError} UNAVAILABLE, which asks for another try
 */
export function assertCatalogKnown({ profile, catalog }: Pick<Provider, 'profile' | 'catalog'>): void {
  if (catalog.refreshedAt !== null) return;
  throw new ApiError('UNAVAILABLE', `What ${profile.name} sells is not known yet; try again.`);
}
