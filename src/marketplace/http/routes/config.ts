import { createRoute } from '@hono/zod-openapi';
import { systemConfigSchema } from '../../contract/system-config.ts';
import type { HttpDeps } from '../deps.ts';
import { errorResponses } from '../error-responses.ts';
import { readSystemConfig } from '../system-config.ts';
import { bearer, createRouter, jsonContent } from './router.ts';

const systemRoute = createRoute({
  method: 'get',
  path: '/api/config/system',
  operationId: 'getSystemConfig',
  summary: 'What this marketplace is set to',
  description: 'Among it the minimum runtime before a deployment may be terminated.',
  tags: ['Configuration'],
  security: bearer,
  responses: {
    200: { description: 'The configuration.', content: jsonContent(systemConfigSchema) },
    ...errorResponses('UNAUTHORIZED'),
  },
});

/** M: GET /api/config/system. */
export function configRoutes(deps: HttpDeps) {
  const { options } = deps.rateLimits;
  return createRouter().openapi(systemRoute, (context) => context.json(readSystemConfig(deps, options), 200));
}
