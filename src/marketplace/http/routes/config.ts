import { createRoute } from '@hono/zod-openapi';
import { bearer } from '../../../http/api/create-app.ts';
import { failureReasons } from '../../contract/deployment.ts';
import { type SystemConfig, systemConfigSchema } from '../../contract/system-config.ts';
import type { Deps } from '../../deps.ts';
import type { RateLimitOptions } from '../../model/options.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

/** M: GET /api/config/system. */
function readSystemConfig(
  { providers, options }: Pick<Deps, 'providers' | 'options'>,
  { windowMs, catalogReads, accountRequests, creates, otherRequests }: RateLimitOptions,
): SystemConfig {
  const [min, max] = options.polling.intervalMs;
  return {
    currency: 'USD',
    minimumRuntimeMinutes: options.minimumRuntimeMinutes,
    pollIntervalSeconds: { min: min / 1000, max: max / 1000 },
    providers: [...providers.ids()],
    volumeProviders: providers.ids().filter((id) => providers.get(id)?.profile.volumes != null),
    failureReasons,
    rateLimits: {
      windowSeconds: windowMs / 1000,
      catalogReads,
      accountRequests,
      deploymentCreates: creates,
      otherRequests,
    },
  };
}

const systemRoute = createRoute({
  method: 'get',
  path: '/api/config/system',
  operationId: 'getSystemConfig',
  summary: 'Settings of this marketplace',
  description: 'Includes the minimum runtime before a deployment may be terminated.',
  tags: ['Configuration'],
  security: bearer,
  responses: errors.replies(200, 'The configuration.', systemConfigSchema, ['UNAUTHORIZED']),
});

/** M: GET /api/config/system. */
export function configRoutes(deps: HttpDeps) {
  const { options } = deps.rateLimits;
  return createRouter().openapi(systemRoute, (context) => context.json(readSystemConfig(deps, options), 200));
}
