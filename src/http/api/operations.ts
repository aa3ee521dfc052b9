import { type Env, Hono } from 'hono';
import { type KnownHosts, knownHostsOnly } from './known-hosts.ts';
import type { NodeBindings } from './request-context.ts';

/** Returns why the server is not ready, or undefined if it is. */
export type FindProblem = () => Promise<string | undefined>;

/** The inputs of readiness. */
export interface ReadinessDeps {
  /** False once the server shuts down. */
  isServing: () => boolean;
  writes: { areWritesTaken: boolean };
  /** Any read of the store. It rejects while the store does not answer. */
  readStore: () => Promise<unknown>;
  /** Returns any other reason why this server cannot work. */
  findOther?: () => string | undefined;
}

/** Returns the reason for a 503 of `/readyz`. */
export function readiness({ isServing, writes, readStore, findOther }: ReadinessDeps): FindProblem {
  return async () => {
    if (!isServing()) return 'draining';
    const other = findOther?.();
    if (other !== undefined) return other;
    return readStore().then(
      () => (writes.areWritesTaken ? undefined : 'the store accepts no writes'),
      () => 'the store does not answer',
    );
  };
}

/** The metrics of a server, in the Prometheus text format. */
export interface MetricsText {
  render(): Promise<{ contentType: string; text: string }>;
}

/** `/healthz`: the process is alive. `/readyz`: it can do its work. */
function healthRoutes<E extends Env>(findProblem: FindProblem): Hono<E> {
  return new Hono<E>()
    .get('/healthz', (context) => context.json({ status: 'ok' }))
    .get('/readyz', async (context) => {
      const problem = await findProblem();
      return problem === undefined
        ? context.json({ status: 'ready' })
        : context.json({ status: 'not ready', problem }, 503);
    }) as Hono<E>;
}

/** Public routes beside the API on its port: the health, the API's description, and links to them. */
export function openRoutes<E extends Env>({
  title,
  api,
  document,
  findProblem,
}: {
  title: string;
  /** Prefix of every path of the API. */
  api: string;
  /** Builds the OpenAPI document. */
  document: () => object;
  findProblem: FindProblem;
}): Hono<E> {
  const places = { openapi: '/openapi.json', health: '/healthz', readiness: '/readyz' };
  let bytes: Buffer | undefined;
  return new Hono<E>()
    .route('/', healthRoutes<E>(findProblem))
    .get('/', (context) => context.json({ title, api, ...places }))
    .get('/openapi.json', (context) => {
      bytes ??= Buffer.from(JSON.stringify(document()));
      const headers = { 'Content-Type': 'application/json', 'Content-Length': String(bytes.length) };
      return context.body(sharedBody(bytes), 200, headers);
    }) as Hono<E>;
}

/** An app that answers all paths below one path of the admin listener. Its routes include that path. */
interface PartOfAdmin {
  fetch(request: Request, env: NodeBindings): Response | Promise<Response>;
}

interface AdminParts extends Omit<KnownHosts, 'setting'> {
  /** Apps by path. Each answers all paths below its own, and only under the listener's host names. */
  apps: Readonly<Record<string, PartOfAdmin>>;
}

/**
 * The admin listener: metrics, which clients of the API must not see, and health, under any host name; `apps` only
 * under the listener's host names.
 */
export function adminApp(findProblem: FindProblem, metrics: MetricsText, parts?: AdminParts): Hono {
  const app = new Hono().route('/', healthRoutes(findProblem)).get('/metrics', async (context) => {
    const { contentType, text } = await metrics.render();
    return context.body(text, 200, { 'Content-Type': contentType });
  });
  const apps = Object.entries(parts?.apps ?? {});
  const known = parts && knownHostsOnly({ ...parts, setting: 'server.admin.hosts' });
  for (const [path, part] of apps) {
    if (known !== undefined) app.use(`${path}/*`, known);
    app.all(`${path}/*`, (context) => part.fetch(context.req.raw, context.env as NodeBindings));
  }
  const places = ['/metrics', '/healthz', '/readyz', ...apps.map(([path]) => path)].join(', ');
  return app.notFound((context) =>
    context.json({ error: `The admin listener has ${places}; the API is on another port.` }, 404),
  );
}

/** Part of a body that is sent to one client at a time. */
const SLICE_BYTES = 64 * 1024;

/**
 * Streams one buffer to many clients, slice by slice, each after the last one was drained. A slow client then holds one
 * slice, not a copy of the body (TLS copies all data that it is given).
 */
function sharedBody(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(sent, sent + SLICE_BYTES));
        sent += SLICE_BYTES;
        if (sent >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
