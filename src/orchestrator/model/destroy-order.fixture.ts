import { recordedOrder } from './destroy-order.ts';

/** An order as the core passes it to a driver for a tenant's DELETE. */
export const anOrder = recordedOrder({ reason: 'tenant', by: 'acct-1', at: 0 });
