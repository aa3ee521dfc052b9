import type { Metric, Published } from './published.ts';

/** docs/metrics.md: every figure of both servers. */
export function metricsPage({ orchestrator, marketplace }: Published['metrics']): string {
  const own = new Map(orchestrator.map((metric) => [metric.name, toLine(metric)]));
  const isShared = (metric: Metric): boolean => {
    const name = metric.name.replace('berth_marketplace_', 'berth_');
    return own.get(name) === toLine({ ...metric, name });
  };
  const shared = marketplace.filter(isShared).map(({ name }) => `\`${name}\``);
  return [
    '# Metrics',
    '',
    '`/metrics` on the admin listener (`http://127.0.0.1:9080` of `berth serve`, `:9081` of `berth marketplace`); `berth serve` adds',
    '`process_…` and `nodejs_…`. A metric counted in the database is read at most once in five seconds. Names in `_total` are counters,',
    'others gauges, unless marked as histograms. In brackets: the labels. [operations/](operations/README.md) has a dashboard and alert',
    'rules.',
    '',
    '## berth serve',
    '',
    ...orchestrator.map(toLine),
    '',
    '## berth marketplace',
    '',
    ...marketplace.filter((metric) => !isShared(metric)).map(toLine),
    '',
    `As of \`berth serve\`: ${shared.join(', ')}.`,
    '',
  ].join('\n');
}

function toLine({ name, type, labels, help }: Metric): string {
  const notes = [...(type === 'histogram' ? [type] : []), ...labels.map((label) => `\`${label}\``)];
  return `- \`${name}\`${notes.length > 0 ? ` (${notes.join(', ')})` : ''}: ${help}`;
}
