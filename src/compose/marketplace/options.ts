import type { MarketplaceConfig, MarkupEntry } from '../../config/marketplace/schema.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type {
  LossCapOptions,
  MarketplaceOptions,
  RateLimitOptions,
} from '../../marketplace/model/options.ts';
import { type Markup, type Markups, noMarkups } from '../../marketplace/providers/markup.ts';
import { DAY_MS } from '../../ports/clock.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Converts marketplace.yaml: times in milliseconds, amounts in micro-USD. */
export function toMarketplaceOptions({
  polling,
  billing,
  team_limits,
  retention,
}: MarketplaceConfig): MarketplaceOptions {
  const [min, max] = polling.interval_s;
  const { grace_minutes, stopped_grace_hours, volumes_kept_days, volume_notice_days } = billing.zero_balance;
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
      sshWindowMs: polling.ssh_window_s * SECOND_MS,
    },
    maxLosses: toLossCap(polling),
    mailsKeptMs: retention.mails_days === null ? null : retention.mails_days * DAY_MS,
    auditKeptMs: retention.audit_days * DAY_MS,
    lifecycleWaitMs: polling.lifecycle_wait_s * SECOND_MS,
    spending: {
      balanceForMs: billing.required_hours * HOUR_MS,
      teamLimits: {
        deployments: team_limits.deployments,
        volumes: team_limits.volumes,
        volumeGb: team_limits.volume_gb,
      },
    },
    billing: {
      sliceMs: billing.slice_s === null ? null : billing.slice_s * SECOND_MS,
      rollUp: {
        afterMs: billing.roll_up_after_days === null ? null : billing.roll_up_after_days * DAY_MS,
        periodMs: DAY_MS,
      },
      volumeDiscounts: billing.volume_discounts.map(({ spend_usd, percentage }) => ({
        spendMicroUsd: microUsdFromUsd(spend_usd),
        percentage,
      })),
      zeroBalance: {
        graceMs: grace_minutes * MINUTE_MS,
        stoppedGraceMs: stopped_grace_hours * HOUR_MS,
        volumes: {
          keepMs: volumes_kept_days * DAY_MS,
          noticesMs: volume_notice_days.map((days) => days * DAY_MS),
        },
      },
    },
  };
}

/** Converts `markup:` of a provider to hundredths of a percent and micro-USD. */
export function toMarkups(entry: MarkupEntry | undefined): Markups {
  if (entry === undefined) return noMarkups;
  const offers = Object.entries(entry.offers).flatMap(([offerId, own]) => {
    const markup = toMarkup(own);
    return markup === null ? [] : [[offerId, markup] as const];
  });
  return { all: toMarkup(entry), offers: new Map(offers) };
}

function toMarkup({ percent, usd_per_hour: usd }: Omit<MarkupEntry, 'offers'>): Markup | null {
  if (percent !== undefined) return { basisPoints: Math.round(percent * 100) };
  return usd === undefined ? null : { microUsdPerHour: microUsdFromUsd(usd) };
}

/** Converts `polling.max_losses:`. */
export function toLossCap({ max_losses }: MarketplaceConfig['polling']): LossCapOptions {
  return { share: max_losses.share, least: max_losses.least, windowMs: max_losses.window_s * SECOND_MS };
}

/** Converts `rate_limits:`. */
export function toRateLimits({ rate_limits: limits }: MarketplaceConfig): RateLimitOptions {
  return {
    windowMs: limits.window_s * SECOND_MS,
    catalogReads: limits.catalog_reads,
    accountRequests: limits.account_requests,
    creates: limits.creates_per_user,
    otherRequests: limits.other_requests,
  };
}
