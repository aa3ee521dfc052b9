import { createRoute, z } from '@hono/zod-openapi';
import type { ErrorCode } from '../../contract/errors.ts';
import { bearer } from '../../http/api/create-app.ts';
import type { ApiErrors } from '../../http/api/errors.ts';
import { auditPageSchema } from '../views/audit.ts';
import { limitSchema } from './router.ts';

/** `GET /audit` of the operator's API of either product. */
export function auditRouteOf(errors: ApiErrors<ErrorCode>) {
  return createRoute({
    tags: ['Views'],
    security: bearer,
    method: 'get',
    path: '/audit',
    operationId: 'listAudit',
    summary: 'List actions of operators',
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
}
