import { recordedOrder } from './destroy-order.ts';

/** An order for a tenant's DELETE, as the core passes it to a driver. */
export const anOrder = recordedOrder({ reason: 'tenant', by: 'acct-1', at: 0 });
