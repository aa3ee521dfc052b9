import { idleSync } from './idle-sync.ts';

/** Running deployments that do not change, at a provider that lists changes. */
export const open = idleSync(true);
