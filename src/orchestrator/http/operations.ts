import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Hono } from 'hono';
import type { Store } from '../ports/store.ts';
import type { HttpEnv } from './deps.ts';
import type { Metrics } from './metrics.ts';

interface Deps {
  store: Store;
  metrics: Metrics;
  /** The OpenAPI document of /v1. */
  document: object;
  /** False from the moment on at which the server drains. */
  isServing: () => boolean;
  /** Whether the time here is near enough to that of the other servers. */
  isInStep: () => boolean;
}

const swaggerUiFolder = new URL(
  './',
  `file://${createRequire(import.meta.url).resolve('swagger-ui-dist/package.json')}`,
);
const swaggerUiFiles = new Map([
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
]);

/** What is beside the contract, outside /v1: health, metrics and the description of the API. */
export function operationRoutes({ store, metrics, document, isServing, isInStep }: Deps): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/healthz', (context) => context.json({ status: 'ok' }))
    .get('/readyz', async (context) => {
      const problem = isServing() ? await findProblem(store, isInStep) : 'draining';
      return problem === undefined
        ? context.json({ status: 'ready' })
        : context.json({ status: 'not ready', problem }, 503);
    })
    .get('/metrics', async (context) => {
      const { contentType, text } = await metrics.render();
      return context.body(text, 200, { 'Content-Type': contentType });
    })
    .get('/openapi.json', (context) => context.json(document))
    .get('/docs', (context) => context.html(docsPage, 200, { 'Content-Security-Policy': docsPolicy }))
    .get('/docs/:file', async (context) => {
      const type = swaggerUiFiles.get(context.req.param('file'));
      if (type === undefined) return context.notFound();
      const bytes = await readFile(new URL(context.req.param('file'), swaggerUiFolder));
      return context.body(new Uint8Array(bytes), 200, {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=86400',
      });
    });
}

async function findProblem(store: Store, isInStep: () => boolean): Promise<string | undefined> {
  if (!isInStep()) return "the clock is too far from the database's";
  return store.read.work.backlog().then(
    () => undefined,
    () => 'the store does not answer',
  );
}

const docsScript = "SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs', deepLinking: true });";
const docsPolicy = `default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self' 'sha256-${createHash('sha256').update(docsScript).digest('base64')}'`;
const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Provider Orchestrator API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>${docsScript}</script>
</body>
</html>
`;
