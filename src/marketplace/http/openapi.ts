import type { OpenAPIHono } from '@hono/zod-openapi';
import { describeRoutes } from '../../http/api/create-app.ts';
import type { HttpEnv } from './deps.ts';

/** M: Versioning: "Releases carry labels of the form v<major>.<minor>.<patch>". */
const RELEASE = '1.0.0';

let known: ReturnType<typeof describe> | undefined;

/** The document is built once per process. `openapi/marketplace.json` is a committed copy. */
export function openApiDocument(api: OpenAPIHono<HttpEnv>) {
  known ??= describe(api);
  return known;
}

function describe(routes: OpenAPIHono<HttpEnv>) {
  return describeRoutes(routes, {
    title: 'Marketplace REST API',
    version: RELEASE,
    description:
      'The end-user REST API of a marketplace for GPU and CPU instances: offers, deployments, SSH keys, volumes, teams and balance. Prices are USD per hour, memory and storage are GB, timestamps are ISO 8601 UTC. Every response carries X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset (seconds since the epoch).',
    credential: 'An API key.',
    url: '/',
    tags: [
      { name: 'Providers and offers', description: 'Providers, and the offers in stock.' },
      { name: 'Configuration', description: 'Settings of this marketplace.' },
      { name: 'Deployments', description: "Machines of the caller's teams." },
      {
        name: 'Lifecycle',
        description: 'Stop, start and restart a deployment, where its provider supports it.',
      },
      { name: 'SSH keys', description: 'Saved public keys for SSH login to deployments.' },
      { name: 'Volumes', description: 'Storage that outlives the deployments it is attached to.' },
      { name: 'Teams and balance', description: 'Teams and their balances, in USD.' },
    ],
  });
}
