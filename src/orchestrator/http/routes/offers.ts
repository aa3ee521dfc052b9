import { createRoute, z } from '@hono/zod-openapi';
import { configurationListSchema, instanceTypeSchema } from '../../../contract/configuration.ts';
import { bearer } from '../../../http/api/create-app.ts';
import { listAvailable, listConfigurations } from '../../capacity/list-configurations.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

const responses = errors.replies(200, 'The offers.', configurationListSchema, ['unauthorized']);

const configurationsRoute = createRoute({
  method: 'get',
  path: '/configurations',
  operationId: 'listConfigurations',
  summary: 'Every offer, deployable or not',
  description:
    'The catalog, for display: an offer that cannot be deployed now is listed with `available: false` and never left out.',
  tags: ['Offers'],
  security: bearer,
  request: { query: z.object({ instance_type: instanceTypeSchema.optional() }) },
  responses,
});

const availabilityRoute = createRoute({
  method: 'get',
  path: '/availability',
  operationId: 'listAvailability',
  summary: 'The offers that can be deployed now, and where',
  description:
    'For use right before a create: only offers that can be deployed now, with their available regions. An unknown region has no offers.',
  tags: ['Offers'],
  security: bearer,
  request: { query: z.object({ region: z.string().optional() }) },
  responses,
});

/** O: Offers. */
export function offerRoutes({ catalog, store, clock, manifests, supply }: HttpDeps) {
  const deps = { catalog, read: store.read, clock, manifests, supply };
  return createRouter()
    .openapi(configurationsRoute, async (context) => {
      const configurations = await listConfigurations(deps, context.req.valid('query').instance_type);
      return context.json({ configurations }, 200);
    })
    .openapi(availabilityRoute, async (context) => {
      const configurations = await listAvailable(deps, context.req.valid('query').region);
      return context.json({ configurations }, 200);
    });
}
