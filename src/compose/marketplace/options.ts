import type { MarketplaceConfig, MarkupEntry } from '../../config/marketplace/schema.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import { defaultOptions, type MarketplaceOptions } from '../../marketplace/model/options.ts';
import { type Markup, type Markups, noMarkups } from '../../marketplace/providers/markup.ts';
import { DAY_MS } from '../../ports/clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Converts marketplace.yaml: times in milliseconds, amounts in micro-USD. */
export function toMarketplaceOptions({
  billing,
  team_limits,
  retention,
}: MarketplaceConfig): MarketplaceOptions {
  const { grace_minutes, stopped_grace_hours, volumes_kept_days } = billing;
  const { zeroBalance } = defaultOptions.billing;
  return {
    ...defaultOptions,
    minimumRuntimeMinutes: billing.minimum_runtime_minutes,
    mailsKeptMs: retention.mails_days === null ? null : retention.mails_days * DAY_MS,
    auditKeptMs: retention.audit_days * DAY_MS,
    spending: {
      balanceForMs: billing.required_hours * HOUR_MS,
      teamLimits: {
        deployments: team_limits.deployments,
        volumes: team_limits.volumes,
        volumeGb: team_limits.volume_gb,
      },
    },
    billing: {
      ...defaultOptions.billing,
      volumeDiscounts: billing.volume_discounts.map(({ spend_usd, percentage }) => ({
        spendMicroUsd: microUsdFromUsd(spend_usd),
        percentage,
      })),
      zeroBalance: {
        graceMs: grace_minutes * MINUTE_MS,
        stoppedGraceMs: stopped_grace_hours * HOUR_MS,
        volumes: { ...zeroBalance.volumes, keepMs: volumes_kept_days * DAY_MS },
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
