import type { OpenAPIHono } from '@hono/zod-openapi';
import { envelopeErrors } from '../../../operator-kit/http/errors.ts';
import { operationRoutes } from '../../../operator-kit/http/operation-routes.ts';
import {
  type Authentication,
  assembleOperatorApp,
  type OperatorEnv,
} from '../../../operator-kit/http/router.ts';
import type { Log } from '../../../ports/log.ts';
import { OperatorError } from '../../model/own-rows.ts';
import { type OperationDeps, operations } from '../../operate/operations.ts';
import type { Metrics } from '../metrics.ts';

/** Dependencies of the admin listener's API. */
export interface OperatorDeps extends OperationDeps {
  operators: Authentication;
  metrics: Metrics;
  log: Log;
  /** How many proxies in front of this server append to X-Forwarded-For; 0: the header is ignored. */
  trustedProxies: number;
}

/** The operators' error format, the same for both products. It differs from the users' format. */
const errors = envelopeErrors({ server: 'marketplace', store: 'database' });

/**
 * The marketplace operator's API, on the admin listener. It accepts operator keys only. `sandboxUrl`: its URL in a
 * sandbox.
 */
export function createOperatorApp(
  deps: OperatorDeps,
  { nextId, sandboxUrl }: { nextId: () => string; sandboxUrl?: string },
): OpenAPIHono<OperatorEnv> {
  return assembleOperatorApp({
    ...deps,
    product: 'marketplace',
    nextId,
    errors,
    routes: [operationRoutes(operations, deps, errors)],
    sandboxUrl,
    codeOf: (refused) => (refused instanceof OperatorError ? refused.code : undefined),
    about: {
      title: 'Berth marketplace operator API',
      description:
        'Views and actions of the marketplace operator, on the admin listener. Operator keys and user keys are separate: neither is accepted in place of the other.',
      credential: 'An operator key, created with `berth marketplace operators create`.',
      tags: [
        { name: 'Views', description: 'Providers, deployments, teams, mails and the books.' },
        { name: 'People', description: 'Users with their keys and stock alerts, and the members of teams.' },
        { name: 'Discounts', description: 'Discounts of teams.' },
        { name: 'Actions', description: 'Operator actions; each is recorded in the audit log.' },
      ],
    },
  });
}
