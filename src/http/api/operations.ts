import { type Env, Hono } from 'hono';
import { accepts } from 'hono/accepts';
import { apiDocs } from './api-docs.ts';
import { type KnownHosts, knownHostsOnly } from './known-hosts.ts';
import type { NodeBindings } from './request-context.ts';

/** Why the server is not ready; undefined: it is. */
export type FindProblem = () => Promise<string | undefined>;

/** What readiness depends on. */
export interface ReadinessDeps {
  /** False from the moment on at which the server drains. */
  isServing: () => boolean;
  writes: { areWritesTaken: boolean };
  /** Any read of the store; it rejects while the store does not answer. */
  readStore: () => Promise<unknown>;
  /** What else keeps this server from its work. */
  findOther?: () => string | undefined;
}

/** Why `/readyz` is 503. */
export function readiness({ isServing, writes, readStore, findOther }: ReadinessDeps): FindProblem {
  return async () => {
    if (!isServing()) return 'draining';
    const other = findOther?.();
    if (other !== undefined) return other;
    return readStore().then(
      () => (writes.areWritesTaken ? undefined : 'the store takes no writes'),
      () => 'the store does not answer',
    );
  };
}

/** What a server tells of itself, in the Prometheus text format. */
export interface MetricsText {
  render(): Promise<{ contentType: string; text: string }>;
}

/** `/healthz`: the process lives. `/readyz`: it can do its work. */
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

/** What is beside the API on its port, for anybody: the health, the description of the API, and where they are. */
export function openRoutes<E extends Env>({
  title,
  api,
  document,
  findProblem,
  hasDocs,
}: {
  title: string;
  /** What every path of the API begins with. */
  api: string;
  /** Makes the OpenAPI document. */
  document: () => object;
  findProblem: FindProblem;
  hasDocs: boolean;
}): Hono<E> {
  const places = {
    ...(hasDocs && { docs: '/docs' }),
    openapi: '/openapi.json',
    health: '/healthz',
    readiness: '/readyz',
  };
  return new Hono<E>()
    .route('/', healthRoutes<E>(findProblem))
    .route('/', apiDocs<E>(title, document, { hasPage: hasDocs }))
    .route('/', frontPage<E>({ title, api, places })) as Hono<E>;
}

/** An app that answers all that is below one path of the admin listener; its routes have that path too. */
interface PartOfAdmin {
  fetch(request: Request, env: NodeBindings): Response | Promise<Response>;
}

interface AdminParts extends KnownHosts {
  /** By path: each answers all that is below its own, under the names of the listener alone. */
  apps: Readonly<Record<string, PartOfAdmin>>;
}

/**
 * What the admin listener answers: the metrics, which clients of the API must not see, and the health, under any
 * name; `apps` under the names of the listener.
 */
export function adminApp(findProblem: FindProblem, metrics: MetricsText, parts?: AdminParts): Hono {
  const app = new Hono().route('/', healthRoutes(findProblem)).get('/metrics', async (context) => {
    const { contentType, text } = await metrics.render();
    return context.body(text, 200, { 'Content-Type': contentType });
  });
  const apps = Object.entries(parts?.apps ?? {});
  const known = parts && knownHostsOnly(parts);
  for (const [path, part] of apps) {
    if (known !== undefined) app.use(`${path}/*`, known);
    app.all(`${path}/*`, (context) => part.fetch(context.req.raw, context.env as NodeBindings));
  }
  const places = ['/metrics', '/healthz', '/readyz', ...apps.map(([path]) => path)].join(', ');
  return app.notFound((context) =>
    context.json({ error: `The admin listener has ${places}; the API is on another port.` }, 404),
  );
}

/** What a server has at its root. */
export interface FrontPage {
  title: string;
  /** What every path of the API begins with. */
  api: string;
  /** By what is found there: the path. */
  places: Readonly<Record<string, string>>;
}

/** `/`: where the API, its description and the health are, as a page for a browser and as JSON for all else. */
function frontPage<E extends Env>({ title, api, places }: FrontPage): Hono<E> {
  const page = toPage({ title, api, places });
  return new Hono<E>().get('/', (context) => {
    context.header('Vary', 'Accept');
    const type = accepts(context, {
      header: 'Accept',
      supports: ['application/json', 'text/html'],
      default: 'application/json',
    });
    if (type !== 'text/html') return context.json({ title, api, ...places });
    return context.html(page, 200, { 'Content-Security-Policy': PAGE_POLICY });
  }) as Hono<E>;
}

const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'";

function toPage({ title, api, places }: FrontPage): string {
  const rows = Object.entries(places).map(
    ([name, path]) => `<li>${name}: <a href="${path}">${path}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
</head>
<body>
<h1>${title}</h1>
<p>The API is at <code>${api}</code>; requests carry <code>Authorization: Bearer API_KEY</code>.</p>
<ul>
${rows.join('\n')}
</ul>
</body>
</html>
`;
}
