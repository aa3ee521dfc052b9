import { type Env, Hono } from 'hono';
import { apiDocs } from './api-docs.ts';
import { frontPage } from './front-page.ts';

/** Why the server is not ready; undefined: it is. */
export type FindProblem = () => Promise<string | undefined>;

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
  /** The OpenAPI document. */
  document: object;
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

/** What the admin listener answers: the metrics, which are not for whoever reaches the API, and the health. */
export function adminApp(findProblem: FindProblem, metrics: MetricsText): Hono {
  return new Hono()
    .route('/', healthRoutes(findProblem))
    .get('/metrics', async (context) => {
      const { contentType, text } = await metrics.render();
      return context.body(text, 200, { 'Content-Type': contentType });
    })
    .notFound((context) =>
      context.json(
        { error: 'The admin listener has /metrics, /healthz and /readyz; the API is on another port.' },
        404,
      ),
    );
}
