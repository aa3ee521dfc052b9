import type { OpenAPIHono } from '@hono/zod-openapi';
import { describeRoutes } from '../../http/api/create-app.ts';
import type { HttpEnv } from './deps.ts';

/** The contract's own version label (O: Versioning). */
const CONTRACT_VERSION = '1.0.0';

let known: ReturnType<typeof describe> | undefined;

/**
 * The OpenAPI document of the routes. It is made once, since all servers of a process have the same.
 * `openapi/orchestrator.v1.json` is a committed copy.
 */
export function openApiDocument(v1: OpenAPIHono<HttpEnv>) {
  known ??= describe(v1);
  return known;
}

function describe(routes: OpenAPIHono<HttpEnv>) {
  const document = describeRoutes(routes, {
    title: 'Provider Orchestrator API',
    version: CONTRACT_VERSION,
    description:
      'The HTTP API that a compute provider exposes so that a marketplace can list its offers, provision instances and manage them. Poll based: the client polls GET /instances/{instanceId} every 10 to 30 seconds for each active instance.',
    credential: 'A long-lived API key, or an access token of POST /auth/token.',
    url: '/v1',
    tags: [
      { name: 'Authentication', description: 'Short-lived tokens, for clients that send no long-lived key.' },
      { name: 'Offers', description: 'The catalog, and what can be deployed now.' },
      { name: 'Instances', description: 'Machines: create, poll, stop, start and destroy them.' },
      { name: 'Volumes', description: 'Network volumes: create, attach, detach and delete them.' },
      {
        name: 'Beyond the contract',
        description:
          'Extensions of this server, announced in `extras.berth` of each offer. Clients of the contract do not need them.',
      },
    ],
  });
  for (const { get } of Object.values(document.paths ?? {}))
    if (get?.responses !== undefined)
      get.responses[304] = { description: 'Unchanged: the client has it already, as `If-None-Match` says.' };
  return document;
}
