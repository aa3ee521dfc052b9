import { createRoute, z } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { bearer } from '../../../http/api/create-app.ts';
import { createOperatorRouter, limitSchema } from '../../../operators/http/router.ts';
import { findAccount } from '../../operate/views/accounts.ts';
import {
  instanceDetailSchema,
  instancePageSchema,
  isAfter,
  listInstances,
  readInstance,
} from '../../operate/views/instances.ts';
import { errors } from '../errors.ts';
import type { OperatorDeps } from './deps.ts';

const shared = { tags: ['Instances'], security: bearer };

const instancesRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances',
  operationId: 'findInstances',
  summary: 'Instances of all accounts, page by page',
  description:
    'Instances that are not destroyed. `q` searches id, name, owner ref, endpoint, error and cause of failure.',
  request: {
    query: z.object({
      account: z.string().optional().meta({ description: 'The name or the id of an account.' }),
      status: instanceStatusSchema.optional(),
      offer: z.string().optional(),
      region: z.string().optional(),
      platform: z.string().optional(),
      host: z.string().optional(),
      q: z.string().max(200).optional(),
      order: z.enum(['oldest', 'newest']).optional(),
      after: z.string().refine(isAfter, 'expected the `next` value of a page').optional(),
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'One page.', instancePageSchema, ['unauthorized', 'not_found']),
});

const instanceRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances/{instanceId}',
  operationId: 'showInstance',
  summary: 'One instance with its history',
  description: 'Includes a destroyed instance until its tombstone is pruned.',
  request: { params: z.object({ instanceId: z.string() }) },
  responses: errors.replies(200, 'The instance.', instanceDetailSchema, ['unauthorized', 'not_found']),
});

/** The routes for an operator's view of instances. */
export function instanceRoutes({ store: { read } }: Pick<OperatorDeps, 'store'>) {
  return createOperatorRouter()
    .openapi(instancesRoute, async (context) => {
      const { account, offer, q, ...query } = context.req.valid('query');
      const owner = account === undefined ? undefined : await findAccount(read, account);
      if (owner === null) throw new ApiError('not_found', 'There is no account of this name or id.');
      const of = { ...query, accountId: owner?.id, offerId: offer, text: q };
      return context.json(await listInstances(read, of), 200);
    })
    .openapi(instanceRoute, async (context) => {
      const { instanceId } = context.req.valid('param');
      const found = await readInstance(read, instanceId);
      if (found === null) throw new ApiError('not_found', 'There is no instance with this id.');
      return context.json(found, 200);
    });
}
