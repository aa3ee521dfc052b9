import type { OpenAPIHono } from '@hono/zod-openapi';
import type { HttpEnv } from './deps.ts';

/** M: Versioning: "Releases carry labels of the form v<major>.<minor>.<patch>". */
const RELEASE = '1.0.0';

/** The OpenAPI document of the routes as they are. `openapi/marketplace.json` is a committed copy. */
export function openApiDocument(api: OpenAPIHono<HttpEnv>) {
  api.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key.',
  });
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Marketplace REST API',
      version: RELEASE,
      description:
        'The end-user REST API of a marketplace for GPU and CPU instances: offers, deployments, SSH keys, volumes, teams and balance. Prices are USD per hour, memory and storage are GB, timestamps are ISO 8601 UTC. Every response carries X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset (seconds since the epoch).',
    },
    servers: [{ url: '/' }],
  });
}
