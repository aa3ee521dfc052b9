import { createRoute, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { bearer } from '../../../http/api/create-app.ts';
import { offerPageSchema, offerQuerySchema, reservedOfferQuerySchema } from '../../contract/offer.ts';
import type { Caller } from '../../model/own-rows.ts';
import { OfferBoard } from '../../offers/offer-board.ts';
import { listOffers, listReservedOffers } from '../../offers/offer-page.ts';
import { callerDiscount } from '../../teams/access.ts';
import type { HttpDeps, HttpEnv } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

const shared = { tags: ['Providers and offers'] };

const providersRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/providers',
  operationId: 'listProviders',
  summary: 'The ids of the providers',
  description: 'Public. Use these ids as `provider` in all other calls.',
  security: [],
  responses: errors.replies(200, 'The ids.', z.array(z.string())),
});

const offersRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/gpu-offers',
  operationId: 'listOffers',
  summary: 'Offers in stock',
  description:
    'Groups of offers by GPU type, page by page; `CPU` is one group. Sold-out offers are not listed. Public; with a credential, prices include the discount of the team.',
  security: [{}, ...bearer],
  request: { query: offerQuerySchema },
  responses: errors.replies(
    200,
    'Grouped by GPU type; with discounts where a credential was sent.',
    offerPageSchema,
    ['UNAUTHORIZED'],
  ),
});

const reservedRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/gpu-offers-with-reserved',
  operationId: 'listOffersWithReserved',
  summary: 'Offers of the given providers, sold-out ones included',
  description: 'Same form as the list of offers. `providers` is a comma-separated list of provider ids.',
  security: bearer,
  request: { query: reservedOfferQuerySchema },
  responses: errors.replies(200, 'Grouped by GPU type.', offerPageSchema, ['UNAUTHORIZED']),
});

/** M: Providers and offers. */
export function offerRoutes(deps: HttpDeps) {
  const { providers } = deps;
  const board = new OfferBoard(deps);
  return createRouter()
    .openapi(providersRoute, (context) => context.json([...providers.ids()], 200))
    .openapi(offersRoute, async (context) => {
      const discount = await callerDiscount(deps, callerOf(context));
      return context.json(await listOffers(board, context.req.valid('query'), discount), 200);
    })
    .openapi(reservedRoute, async (context) => {
      const discount = await callerDiscount(deps, callerOf(context));
      return context.json(
        await listReservedOffers({ board, providers }, context.req.valid('query'), discount),
        200,
      );
    });
}

/** The caller; undefined where the credential is optional and was not sent. */
function callerOf(context: Context<HttpEnv>): Caller | undefined {
  return context.get('caller') as Caller | undefined;
}
