/** The products that have an operators' API. */
export type Product = 'orchestrator' | 'marketplace';

/** The product that a client expects. The server of another one refuses the request. */
export const PRODUCT_HEADER = 'berth-product';
