import { Hono } from 'hono';
import { apiDocs } from '../../http/api-docs.ts';
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
    .route('/', apiDocs<HttpEnv>('Provider Orchestrator API', document));
}

async function findProblem(store: Store, isInStep: () => boolean): Promise<string | undefined> {
  if (!isInStep()) return "the clock is too far from the database's";
  return store.read.work.backlog().then(
    () => undefined,
    () => 'the store does not answer',
  );
}
