import { createSandbox } from '../../src/compose/sandbox/sandbox.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { Certificates } from '../../src/runtime/certificates.ts';
import { silentLog } from '../support/doubles/log.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

/** A figure of /metrics. */
export interface Metric {
  name: string;
  type: string;
  labels: string[];
  help: string;
}

/** What the servers say of themselves. */
export interface Published {
  /** Their OpenAPI documents, by the names of the files. */
  documents: Record<
    'orchestrator.v1' | 'operator.v1' | 'marketplace' | 'marketplace-operator.v1' | 'sandbox-control.v1',
    unknown
  >;
  /** Their figures, without those of Node's own. */
  metrics: { orchestrator: Metric[]; marketplace: Metric[] };
}

let published: Promise<Published> | undefined;

/** Starts one server of each kind; once in a process. */
export function readPublished(): Promise<Published> {
  published ??= read();
  return published;
}

async function read(): Promise<Published> {
  await using orchestrator = await startTestOrchestrator({
    changeCatalog: withStorage,
    certificates: knownCertificate(),
  });
  // Not by `request`, which holds each reply against the document that is about to be written.
  const request = async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const headers = { Authorization: `Bearer ${orchestrator.key}`, 'Content-Type': 'application/json' };
    const sent = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    return (await (await orchestrator.fetch(`/v1${path}`, sent)).json()) as Record<string, unknown>;
  };
  await request('/volumes', volumeRequest());
  const { id } = await request('/instances', instanceRequest());
  const isOnline = async (): Promise<boolean> => (await request(`/instances/${id}`))['status'] === 'ONLINE';
  await until('the instance is ONLINE', isOnline);
  const clock = new VirtualClock();
  const { client } = new PlainProvider(clock);
  await using marketplace = await startTestMarketplace({
    clock,
    providers: { 'provider-d': { client } },
    certificates: knownCertificate(),
    hasOperators: true,
  });
  await marketplace.fetch('/api/providers');
  await using sandbox = await createSandbox();
  const json = async (reply: Promise<Response>): Promise<unknown> => (await reply).json();
  return {
    documents: {
      'orchestrator.v1': await json(orchestrator.fetch('/openapi.json')),
      'operator.v1': await json(orchestrator.admin.fetch('/operator/openapi.json')),
      marketplace: await json(marketplace.fetch('/openapi.json')),
      'marketplace-operator.v1': await json(marketplace.admin.fetch('/operator/openapi.json')),
      'sandbox-control.v1': await json(sandbox.fetch('/control/openapi.json')),
    },
    metrics: { orchestrator: await scrape(orchestrator), marketplace: await scrape(marketplace) },
  };
}

/** One that has long to go: it shows the labels of its figure. */
function knownCertificate(): Certificates {
  const certificates = new Certificates({ clock: new VirtualClock(), log: silentLog });
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
