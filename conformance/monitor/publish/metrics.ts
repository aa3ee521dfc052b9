import type { Certificate, Share } from '../certificate/certificate.ts';

/** What the monitor itself reports, beside the certificates. */
export interface MonitorState {
  /** Resources that may still exist, by provider. */
  left: ReadonlyMap<string, number>;
  /** USD spent on the current UTC day, by provider. */
  spentToday: ReadonlyMap<string, number>;
  /** When the last probe of a provider ended, in milliseconds since the epoch. */
  lastProbeAt: ReadonlyMap<string, number>;
  unsentAlerts: number;
}

interface Metric {
  name: string;
  help: string;
  type: 'gauge';
  /** The labels, as they are written, and the value. */
  samples: readonly (readonly [string, number])[];
}

/** The certificates in the text format of Prometheus. */
export function toMetrics(certificates: readonly Certificate[], state: MonitorState): string {
  const shares = (of: (certificate: Certificate) => Share): Metric['samples'] =>
    certificates.flatMap((certificate) => {
      const { share } = of(certificate);
      return share === null ? [] : [[`provider="${certificate.provider}"`, share] as const];
    });
  const by = (values: ReadonlyMap<string, number>): Metric['samples'] =>
    [...values].map(([provider, value]) => [`provider="${provider}"`, value] as const);
  const metrics: Metric[] = [
    gauge(
      'certified',
      '1 if the provider is certified',
      certificates.map(({ provider, status }) => [`provider="${provider}"`, status === 'certified' ? 1 : 0]),
    ),
    gauge(
      'revoked',
      '1 if a rule revokes the certificate',
      certificates.map(({ provider, status }) => [`provider="${provider}"`, status === 'revoked' ? 1 : 0]),
    ),
    gauge(
      'reached_ratio',
      'Share of logins to ONLINE machines that succeeded',
      shares(({ reached }) => reached),
    ),
    gauge(
      'answered_ratio',
      'Share of reads that were answered',
      shares(({ answered }) => answered),
    ),
    gauge(
      'stocked_ratio',
      'Share of creates of listed offers that were not refused for capacity',
      shares(({ stocked }) => stocked),
    ),
    gauge(
      'priced_ratio',
      'Share of instances that cost no more than their offer',
      shares(({ priced }) => priced),
    ),
    gauge(
      'clean_ratio',
      'Share of machines without remnants of an earlier one',
      shares(({ clean }) => clean),
    ),
    gauge(
      'read_seconds',
      'Latency of reads',
      certificates.flatMap(({ provider, latency_ms: ms }) =>
        ms === null
          ? []
          : (
              [
                ['0.5', ms.p50],
                ['0.95', ms.p95],
                ['0.99', ms.p99],
              ] as const
            ).map(
              ([quantile, value]) => [`provider="${provider}",quantile="${quantile}"`, value / 1000] as const,
            ),
      ),
    ),
    gauge(
      'faulty_checks',
      'Checks that failed in the window',
      certificates.map(({ provider, checks }) => [
        `provider="${provider}"`,
        checks.filter(({ fail }) => fail > 0).length,
      ]),
    ),
    gauge('resources_left', 'Resources that may still exist and be billed', by(state.left)),
    gauge('spent_today_usd', 'Spent on the current UTC day', by(state.spentToday)),
    gauge(
      'last_probe_timestamp_seconds',
      'When the last probe ended',
      [...state.lastProbeAt].map(([provider, at]) => [`provider="${provider}"`, at / 1000]),
    ),
    gauge('unsent_alerts', 'Alerts that the webhook has not accepted', [['', state.unsentAlerts]]),
  ];
  return metrics.map(toText).join('');
}

function gauge(name: string, help: string, samples: Metric['samples']): Metric {
  return { name: `berth_monitor_${name}`, help, type: 'gauge', samples };
}

function toText({ name, help, type, samples }: Metric): string {
  const lines = samples.map(([labels, value]) => `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
