import type { Deps } from '../deps.ts';

/** What the use cases of volumes that speak to a provider are made of. */
export type VolumeDeps = Pick<
  Deps,
  'store' | 'clock' | 'random' | 'log' | 'providers' | 'options' | 'installationId' | 'wake'
>;
