import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from './deps.ts';

/** The contract's own version label (O: Versioning). */
const CONTRACT_VERSION = '1.0.0';

/** The OpenAPI document of the routes as they are. `openapi/orchestrator.v1.json` is a committed copy. */
export function openApiDocument(v1: OpenAPIHono<HttpEnv>) {
  v1.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'A long-lived API key, or an access token of POST /auth/token.',
  });
  return v1.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Provider Orchestrator API',
      version: CONTRACT_VERSION,
      description:
        'The HTTP API that a compute provider exposes so that a marketplace can list its offers, provision instances and manage them. Poll based: the client polls GET /instances/{instanceId} every 10 to 30 seconds for each active instance.',
    },
    servers: [{ url: '/v1' }],
  });
}
