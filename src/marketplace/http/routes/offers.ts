import { z } from '@hono/zod-openapi';
import { bearer } from '../../../http/api/create-app.ts';
import { offerPageSchema, offerQuerySchema, reservedOfferQuerySchema } from '../../contract/offer.ts';
import { OfferBoard } from '../../offers/offer-board.ts';
import { listOffers, listReservedOffers } from '../../offers/offer-page.ts';
import { callerDiscount } from '../../teams/access.ts';
import type { HttpDeps } from '../deps.ts';
import { Routes } from '../route.ts';

/** M: Providers and offers. */
export function offerRoutes(deps: HttpDeps) {
  const { providers } = deps;
  const board = new OfferBoard(deps);
  return new Routes('Providers and offers')
    .add('get', '/api/providers', {
      operationId: 'listProviders',
      summary: 'The ids of the providers',
      description: 'Public. Use these ids as `provider` in all other calls.',
      security: [],
      reply: ['The ids.', z.array(z.string())],
      run: () => [...providers.ids()],
    })
    .add('get', '/api/gpu-offers', {
      operationId: 'listOffers',
      summary: 'Offers in stock',
      description:
        'Groups of offers by GPU type, page by page; `CPU` is one group. Sold-out offers are not listed. Public; with a credential, prices include the discount of the team.',
      security: [{}, ...bearer],
      query: offerQuerySchema.shape,
      reply: [
        'Grouped by GPU type; with discounts where a credential was sent.',
        offerPageSchema,
        ['UNAUTHORIZED'],
      ],
      run: async ({ caller, query }) => listOffers(board, query, await callerDiscount(deps, caller)),
    })
    .add('get', '/api/gpu-offers-with-reserved', {
      operationId: 'listOffersWithReserved',
      summary: 'Offers of the given providers, sold-out ones included',
      description: 'Same form as the list of offers. `providers` is a comma-separated list of provider ids.',
      query: reservedOfferQuerySchema.shape,
      reply: ['Grouped by GPU type.', offerPageSchema, ['UNAUTHORIZED']],
      run: async ({ caller, query }) =>
        listReservedOffers({ board, providers }, query, await callerDiscount(deps, caller)),
    });
}
