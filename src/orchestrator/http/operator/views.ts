import { createRoute, z } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { bearer } from '../../../http/api/create-app.ts';
import { auditPageSchema, listAudit } from '../../operate/views/audit.ts';
import {
  instanceDetailSchema,
  instancePageSchema,
  isAfter,
  listInstances,
  readInstance,
} from '../../operate/views/instances.ts';
import { readStatus, statusViewSchema } from '../../operate/views/status.ts';
import { MAX_PAGE } from '../../operate/views/values.ts';
import { errors } from '../errors.ts';
import { createOperatorRouter, type OperatorDeps } from './deps.ts';

const shared = { tags: ['Views'], security: bearer, method: 'get' as const };

const statusRoute = createRoute({
  ...shared,
  path: '/status',
  operationId: 'getStatus',
  summary: 'What there is and what stands wrong',
  description: 'As `berth status` shows it.',
  responses: errors.replies(200, 'The state of the whole installation.', statusViewSchema, ['unauthorized']),
});

const limitSchema = z.coerce.number().int().min(1).max(MAX_PAGE).optional();

const instancesRoute = createRoute({
  ...shared,
  path: '/instances',
  operationId: 'findInstances',
  summary: 'Instances of all accounts, page by page',
  description: 'Those that are not destroyed. `q` is looked for in id, name, owner ref, error and endpoint.',
  request: {
    query: z.object({
      account: z.string().optional().meta({ description: 'The id of an account.' }),
      status: instanceStatusSchema.optional(),
      offer: z.string().optional(),
      region: z.string().optional(),
      platform: z.string().optional(),
      host: z.string().optional(),
      q: z.string().max(200).optional(),
      order: z.enum(['oldest', 'newest']).optional(),
      after: z.string().refine(isAfter, 'expected the `next` of a page').optional(),
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'A page of them.', instancePageSchema, ['unauthorized']),
});

const instanceRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}',
  operationId: 'showInstance',
  summary: 'One instance with its history',
  description: 'Also one that is destroyed, until its tombstone is pruned.',
  request: { params: z.object({ instanceId: z.string() }) },
  responses: errors.replies(200, 'The instance.', instanceDetailSchema, ['unauthorized', 'not_found']),
});

const auditRoute = createRoute({
  ...shared,
  path: '/audit',
  operationId: 'listAudit',
  summary: 'What operators did',
  description: 'The newest first, page by page; kept for `retention.audit_days`.',
  request: {
    query: z.object({
      actor: z.string().optional(),
      action: z.string().optional(),
      subject: z.string().optional(),
      after: z
        .string()
        .regex(/^\d{1,15}$/, 'expected the `next` of a page')
        .optional(),
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'A page of the audit log.', auditPageSchema, ['unauthorized']),
});

/** What an operator reads. */
export function viewRoutes({ store: { read }, platforms }: OperatorDeps) {
  return createOperatorRouter()
    .openapi(statusRoute, async (context) => context.json(await readStatus(read, platforms), 200))
    .openapi(instancesRoute, async (context) => {
      const { account, offer, q, ...query } = context.req.valid('query');
      const of = { ...query, accountId: account, offerId: offer, text: q };
      return context.json(await listInstances(read, of), 200);
    })
    .openapi(auditRoute, async (context) =>
      context.json(await listAudit(read, context.req.valid('query')), 200),
    )
    .openapi(instanceRoute, async (context) => {
      const { instanceId } = context.req.valid('param');
      const found = await readInstance(read, instanceId);
      if (found === null) throw new ApiError('not_found', 'There is no instance with this id.');
      return context.json(found, 200);
    });
}
