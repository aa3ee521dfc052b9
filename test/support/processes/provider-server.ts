import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ProviderError } from '../../../src/client/orchestrator-client.ts';
import { createSeededRandom } from '../../../src/drivers/kit/seeded-random.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { JournaledProvider } from '../doubles/journaled-provider.ts';
import type { PlainProviderOptions } from '../doubles/plain-provider.ts';

// A provider that keeps O: in truth, over HTTP in a process of its own. It prints its base URL; /control/truth is what
// it has and what it carried out.

export interface ProviderServerOptions extends PlainProviderOptions {
  /** Before and after what is asked for is carried out, each drawn up to it; 0: it answers at once. */
  delayMs?: number;
  seed?: string;
}

interface Call {
  method: string;
  path: readonly string[];
  region: string | null;
  body: Record<string, unknown>;
  key: string | undefined;
}

const { delayMs = 0, seed = '', ...options } = JSON.parse(process.argv[2] ?? '{}') as ProviderServerOptions;
const random = createSeededRandom(seed);
const journaled = new JournaledProvider(systemClock, options);
const { provider } = journaled;

const server = createServer((request, response) => {
  void answer(request).then(({ status, body }) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  });
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ base_url: `http://127.0.0.1:${port}/v1` })}\n`);
});

async function answer(request: IncomingMessage): Promise<{ status: number; body?: unknown }> {
  const call = await toCall(request);
  if (call.path[0] === 'control') return { status: 200, body: journaled.truth() };
  await delay();
  const answered = carryOut(call);
  await delay();
  return answered;
}

async function delay(): Promise<void> {
  if (delayMs > 0) await pause(random.next() * delayMs);
}

function carryOut(call: Call): { status: number; body?: unknown } {
  try {
    const body = route(call);
    if (body === undefined) return { status: 204 };
    return { status: call.method === 'POST' && call.path.length === 2 ? 201 : 200, body };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { code, message } = error;
    return { status: error.status ?? 500, body: { error: { code, message } } };
  }
}

/** @throws {ProviderError} for what the provider refuses */
function route(call: Call): unknown {
  const [, collection, id = '', action] = call.path;
  const offers = () => ({
    configurations: provider.configurations.filter(
      ({ regions }) => call.region === null || regions.includes(call.region),
    ),
  });
  switch (`${call.method} ${collection}`) {
    case 'GET configurations':
    case 'GET availability':
      return offers();
    case 'GET instances':
      return id === '' ? { instances: provider.instances } : provider.get(id);
    case 'POST instances':
      return id === '' ? journaled.create(call.body as never, call.key) : act(id, action);
    case 'DELETE instances':
      return journaled.delete(id);
    case 'GET volumes':
      return id === 'locations' ? { locations: provider.options.volumeLocations } : provider.getVolume(id);
    case 'POST volumes':
      return id === '' ? journaled.createVolume(call.body as never, call.key) : change(id, action, call.body);
    case 'DELETE volumes':
      return void journaled.deleteVolume(id);
    case 'POST x':
    case 'GET x':
      return extension(call);
    default:
      throw unknown();
  }
}

function act(id: string, action: string | undefined): unknown {
  if (action === 'stop') return journaled.stop(id);
  if (action === 'start') return journaled.start(id);
  throw unknown();
}

function change(id: string, action: string | undefined, body: Record<string, unknown>): unknown {
  const instanceIds = body['instance_ids'] as string[] | undefined;
  if (action === 'attach') return journaled.attach(id, instanceIds ?? []);
  if (action === 'detach') return journaled.detach(id, instanceIds);
  throw unknown();
}

function extension({ method, path, body }: Call): unknown {
  const [, , collection, id = '', action] = path;
  if (collection === 'instances' && action === 'restart')
    return method === 'POST' ? journaled.restart(id) : provider.restartStatus(id);
  if (collection === 'volumes' && action === 'resize') return journaled.resize(id, Number(body['size_gb']));
  throw unknown();
}

function unknown(): ProviderError {
  return new ProviderError('not_found', 'there is nothing at this path', { status: 404, code: 'not_found' });
}

async function toCall(request: IncomingMessage): Promise<Call> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://provider');
  let text = '';
  for await (const chunk of request) text += chunk;
  const key = request.headers['idempotency-key'];
  return {
    method: request.method ?? '',
    path: pathname.slice(1).split('/'),
    region: searchParams.get('region'),
    body: text === '' ? {} : JSON.parse(text),
    key: typeof key === 'string' ? key : undefined,
  };
}
