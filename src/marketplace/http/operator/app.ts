import type { OpenAPIHono } from '@hono/zod-openapi';
import { assembleOperatorApp, type OperatorEnv } from '../../../operators/http/router.ts';
import { OperatorError } from '../../model/own-rows.ts';
import { actionRoutes } from './actions.ts';
import { errors, type OperatorDeps } from './deps.ts';
import { viewRoutes } from './views.ts';

/** The marketplace operator's API, on the admin listener. It accepts operator keys only. */
export function createOperatorApp(
  deps: OperatorDeps,
  { nextId }: { nextId: () => string },
): OpenAPIHono<OperatorEnv> {
  return assembleOperatorApp({
    ...deps,
    nextId,
    errors,
    routes: [viewRoutes(deps), actionRoutes(deps)],
    codeOf: (refused) => (refused instanceof OperatorError ? refused.code : undefined),
    about: {
      title: 'Berth marketplace operator API',
      description:
        'What an operator of the marketplace sees and does, on the admin listener. The keys of users do not open it, and its keys open nothing of a user.',
      credential: 'The key of an operator: create one with `berth marketplace operators create`.',
      tags: [
        { name: 'Views', description: 'Providers, deployments, teams, mails and the books.' },
        { name: 'Actions', description: 'What an operator does: each leaves a row in the audit log.' },
      ],
    },
  });
}
