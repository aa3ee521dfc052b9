import { failureReasons } from '../contract/deployment.ts';
import type { SystemConfig } from '../contract/system-config.ts';
import type { Deps } from '../deps.ts';
import type { RateLimitOptions } from '../model/options.ts';

/** M: GET /api/config/system. */
export function readSystemConfig(
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
