import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { MarketplaceOptions, RateLimitOptions } from '../../marketplace/options.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** What `polling:` and `billing:` in marketplace.yaml say, in milliseconds and micro-USD. */
export function toMarketplaceOptions({ polling, billing }: MarketplaceConfig): MarketplaceOptions {
  const [min, max] = polling.interval_s;
  const { grace_minutes, stopped_grace_hours } = billing.zero_balance;
  return {
    minimumRuntimeMinutes: billing.minimum_runtime_minutes,
    polling: {
      intervalMs: [min * SECOND_MS, max * SECOND_MS],
      callTimeoutMs: polling.call_timeout_s * SECOND_MS,
      concurrency: polling.concurrency,
      blinkMs: polling.blink_s * SECOND_MS,
      goneAfterMs: polling.gone_after_s * SECOND_MS,
      sweepMs: polling.sweep_s * SECOND_MS,
      catalogMs: polling.catalog_s * SECOND_MS,
      findCreateMs: polling.find_create_s * SECOND_MS,
      actionMs: polling.action_s * SECOND_MS,
    },
    lifecycleWaitMs: polling.lifecycle_wait_s * SECOND_MS,
    billing: {
      sliceMs: billing.slice_s * SECOND_MS,
      volumeDiscounts: billing.volume_discounts.map(({ spend_usd, percentage }) => ({
        spendMicroUsd: microUsdFromUsd(spend_usd),
        percentage,
      })),
      zeroBalance: { graceMs: grace_minutes * MINUTE_MS, stoppedGraceMs: stopped_grace_hours * HOUR_MS },
    },
  };
}

/** What `rate_limits:` says. */
export function toRateLimits({ rate_limits: limits }: MarketplaceConfig): RateLimitOptions {
  return {
    windowMs: limits.window_s * SECOND_MS,
    catalogReads: limits.catalog_reads,
    accountRequests: limits.account_requests,
    creates: limits.creates_per_user,
    otherRequests: limits.other_requests,
  };
}
