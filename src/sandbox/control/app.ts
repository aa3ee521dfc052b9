import { createHash, timingSafeEqual } from 'node:crypto';
import { OpenAPIHono } from '@hono/zod-openapi';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { isNestedTooDeeply } from '../../contract/parse-json.ts';
import { readBody } from '../../http/api/body.ts';
import { describeRoutes, newRouter } from '../../http/api/create-app.ts';
import type { RequestEnv } from '../../http/api/request-context.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import { CONTROL } from './client.ts';
import { faultRoutes } from './fault-routes.ts';
import { journalRoutes } from './journal-routes.ts';
import type { ControlDeps } from './route.ts';
import { sandboxRoutes } from './sandbox-routes.ts';
import { stateRoutes } from './state-routes.ts';

/** The API's document, the same for every sandbox of a process. It is built on first use. */
let document: string | undefined;

/** The control API, under {@link CONTROL}. */
export function createControlApp(deps: ControlDeps): { fetch(request: Request): Promise<Response> } {
  const routes = newRouter<RequestEnv>((failed) => invalidRequest(toIssues(failed)));
  routes.use(async ({ req }, next) => {
    if (!isKey(req.header('authorization'), deps.key))
      throw new ApiError(
        'unauthorized',
        'Send the key of the control API: Authorization: Bearer CONTROL_KEY.',
      );
    return next();
  });
  // Before the body is read: the operator API reads it.
  routes.all('/:of{providers/[^/]+|marketplace}/:rest{operator/.*}', ({ req }) => {
    const { pathname } = new URL(req.url);
    const path = pathname.slice(pathname.indexOf('/operator/'));
    return deps.operate(req.param('of').replace('providers/', ''), path, req.raw);
  });
  const read = readBody(errors.body);
  routes.use((context, next) =>
    read(context, async () => {
      if (isNestedTooDeeply(await context.req.text()))
        throw errors.body.malformed('expected at most 200 levels of lists and objects');
      return next();
    }),
  );
  for (const add of [...sandboxRoutes, ...stateRoutes, ...faultRoutes, ...journalRoutes]) add(routes, deps);
  const app = new OpenAPIHono<RequestEnv>();
  app.get(`${CONTROL}/openapi.json`, (context) => {
    document ??= JSON.stringify(describe(routes));
    return context.body(document, 200, { 'Content-Type': 'application/json' });
  });
  app.route(CONTROL, routes);
  app.onError((error, context) => errors.respond(context, error, deps.log));
  app.notFound((context) => {
    const { method, path } = context.req;
    const message = `There is no ${method} ${path.slice(0, 100)}; the control API is described at ${CONTROL}/openapi.json.`;
    return errors.respond(context, errors.notFound(message), deps.log);
  });
  return { fetch: async (request) => app.fetch(request) };
}

function describe(routes: OpenAPIHono<RequestEnv>) {
  return describeRoutes(routes, {
    title: 'Sandbox Control API',
    version: '1.0.0',
    description:
      'Controls a `berth sandbox`: its clock, its state and its journal. Only a sandbox has this API, at /control, with a separate key. That key also opens the operator API of each server, at /control/providers/NAME/operator/v1 and /control/marketplace/operator/v1; each is described beside its v1, at openapi.json.',
    credential: 'The control key that `berth sandbox --json` prints.',
    url: CONTROL,
    tags: [
      {
        name: 'Sandbox',
        description: 'Its providers and accounts, and further sandboxes: open one for each test.',
      },
      { name: 'Clock', description: 'All servers of a sandbox share one clock.' },
      { name: 'State', description: 'Reset, snapshots and scenarios.' },
      { name: 'Journal', description: 'The requests of the client, and assertions about them.' },
    ],
  });
}

/** Takes the same time for every wrong key. */
function isKey(authorization: string | undefined, key: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${key}`));
}
