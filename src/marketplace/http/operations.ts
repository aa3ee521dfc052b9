import { Hono } from 'hono';
import { apiDocs } from '../../http/api-docs.ts';
import type { Store } from '../ports/store.ts';
import type { HttpEnv } from './deps.ts';
import type { Metrics } from './metrics.ts';

interface Deps {
  store: Store;
  metrics: Metrics;
  /** The OpenAPI document of /api. */
  document: object;
  /** False from the moment on at which the server drains. */
  isServing: () => boolean;
}

/** What is beside M:, outside /api: health, metrics and the description of the API. */
export function operationRoutes({ store, metrics, document, isServing }: Deps): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/healthz', (context) => context.json({ status: 'ok' }))
    .get('/readyz', async (context) => {
      const problem = isServing() ? await findProblem(store) : 'draining';
      return problem === undefined
        ? context.json({ status: 'ready' })
        : context.json({ status: 'not ready', problem }, 503);
    })
    .get('/metrics', async (context) => {
      const { contentType, text } = await metrics.render();
      return context.body(text, 200, { 'Content-Type': contentType });
    })
    .route('/', apiDocs<HttpEnv>('Marketplace REST API', document));
}

async function findProblem(store: Store): Promise<string | undefined> {
  return store.read.mail.nextDueAt().then(
    () => undefined,
    () => 'the database does not answer',
  );
}
