import { idleSync } from './idle-sync.ts';

/** Deployments that run and do not change, at a provider that lists changes. */
export const open = idleSync(true);
