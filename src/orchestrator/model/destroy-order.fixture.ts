import { recordedOrder } from './destroy-order.ts';

/** The order of a test that plays the core: its account has asked for it. */
export const anOrder = recordedOrder({ reason: 'tenant', by: 'acct-1', at: 0 });
