import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { Certificates } from '../../src/runtime/certificates.ts';
import { silentLog } from '../support/doubles/log.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

/** A figure of /metrics. */
export interface Metric {
  name: string;
  type: string;
  labels: string[];
  help: string;
}

/** What a server of each product tells, without the figures of Node's own. */
export function publishedMetrics(): Promise<PublishedMetrics> {
  published ??= readMetrics();
  return published;
}

interface PublishedMetrics {
  orchestrator: Metric[];
  marketplace: Metric[];
}
let published: Promise<PublishedMetrics> | undefined;

async function readMetrics(): Promise<PublishedMetrics> {
  await using orchestrator = await startTestOrchestrator({
    changeCatalog: withStorage,
    certificates: knownCertificate(),
  });
  const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
  await orchestrator.waitFor(String(body['id']), 'ONLINE');
  const clock = new VirtualClock();
  const { client } = new PlainProvider(clock);
  await using marketplace = await startTestMarketplace({
    clock,
    providers: { 'provider-d': { client } },
    certificates: knownCertificate(),
  });
  await marketplace.fetch('/api/providers');
  return { orchestrator: await scrape(orchestrator), marketplace: await scrape(marketplace) };
}

/** One that has long to go: it shows the labels of its figure. */
function knownCertificate(): Certificates {
  const quiet = silentLog;
  const certificates = new Certificates({ clock: new VirtualClock(), log: quiet });
  certificates.of('api', 'api')({ validTo: '2999-01-01' });
  return certificates;
}

function withStorage(catalog: Catalog): Catalog {
  const regions = [...catalog.regions].map(
    ([token, region]) => [token, { ...region, storageGb: 1_000 }] as const,
  );
  return { ...catalog, regions: new Map(regions) };
}

async function scrape({ admin }: { admin: { fetch(path: string): Promise<Response> } }): Promise<Metric[]> {
  const text = await (await admin.fetch('/metrics')).text();
  const helps = [...text.matchAll(/^# HELP (berth\S*) (.*)$/gm)];
  return helps.map(([, name = '', help = '']) => ({
    name,
    type: new RegExp(`^# TYPE ${name} (\\w+)$`, 'm').exec(text)?.[1] ?? '',
    labels: labelsOf(name, text),
    help,
  }));
}

function labelsOf(name: string, text: string): string[] {
  const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_count|_sum)?\\{([^}]*)\\}`, 'gm'));
  const labels = [...samples].flatMap(([, pairs = '']) =>
    [...pairs.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
  );
  return [...new Set(labels)].filter((label) => label !== 'le');
}

/** docs/metrics.md: every figure of both servers. */
export async function metricsPage(): Promise<string> {
  const { orchestrator, marketplace } = await publishedMetrics();
  const own = new Map(orchestrator.map((metric) => [metric.name, toLine(metric)]));
  const isShared = (metric: Metric): boolean => {
    const name = metric.name.replace('berth_marketplace_', 'berth_');
    return own.get(name) === toLine({ ...metric, name });
  };
  const shared = marketplace.filter(isShared).map(({ name }) => `\`${name}\``);
  return [
    '# Metrics',
    '',
    '`/metrics` on the admin listener (`http://127.0.0.1:9080` of `berth serve`, `:9081` of `berth marketplace`) is in the text format',
    'of Prometheus; `berth serve` adds `process_…` and `nodejs_…`. A metric counted in the database is read at most once in five',
    'seconds. Names in `_total` are counters; the others are gauges, unless marked as histograms. In brackets: the labels.',
    'Generated from a server (`npm run generate`). [operations/](operations/README.md) has a dashboard and alert rules.',
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
