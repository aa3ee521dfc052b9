import type { Check } from './check.ts';

/** Every check, in no order: reports follow requirements.yaml. */
export const CHECKS: readonly Check[] = [];
