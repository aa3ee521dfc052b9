import { failureReasons } from '../../contract/deployment.ts';
import { type SystemConfig, systemConfigSchema } from '../../contract/system-config.ts';
import type { Deps } from '../../deps.ts';
import type { RateLimitOptions } from '../../model/options.ts';
import type { HttpDeps } from '../deps.ts';
import { Routes } from '../route.ts';

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

/** M: GET /api/config/system. */
export function configRoutes(deps: HttpDeps) {
  const { options } = deps.rateLimits;
  return new Routes('Configuration').add('get', '/api/config/system', {
    operationId: 'getSystemConfig',
    summary: 'Settings of this marketplace',
    description: 'Includes the minimum runtime before a deployment may be terminated.',
    reply: ['The configuration.', systemConfigSchema, ['UNAUTHORIZED']],
    run: () => readSystemConfig(deps, options),
  });
}
