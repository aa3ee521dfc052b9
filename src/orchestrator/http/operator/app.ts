import type { OpenAPIHono } from '@hono/zod-openapi';
import { assembleOperatorApp, type OperatorEnv } from '../../../operators/http/router.ts';
import { AccountsError } from '../../accounts/accounts.ts';
import { ActionRefused } from '../../operate/actions/refused.ts';
import { errors } from '../errors.ts';
import { accountRoutes } from './accounts.ts';
import { actionRoutes } from './actions.ts';
import type { OperatorDeps } from './deps.ts';
import { instanceRoutes } from './instances.ts';
import { lossRoutes } from './losses.ts';
import { viewRoutes } from './views.ts';

/** The operator API on the admin listener. It accepts only operator keys. */
export function createOperatorApp(
  deps: OperatorDeps,
  { nextId }: { nextId: () => string },
): OpenAPIHono<OperatorEnv> {
  return assembleOperatorApp({
    ...deps,
    nextId,
    errors,
    routes: [
      viewRoutes(deps),
      instanceRoutes(deps),
      accountRoutes(deps),
      actionRoutes(deps),
      lossRoutes(deps),
    ],
    codeOf: (refused) =>
      refused instanceof ActionRefused || refused instanceof AccountsError ? refused.code : undefined,
    about: {
      title: 'Berth operator API',
      description:
        'Views and actions for operators of Berth, on the admin listener. Operator keys and account keys are separate: neither is accepted in place of the other.',
      credential: 'An operator key, created by `berth operators create`.',
      tags: [
        { name: 'Views', description: 'State, open work and open alarms.' },
        { name: 'Instances', description: 'Instances of all accounts, with their history.' },
        { name: 'Accounts', description: 'Accounts and keys.' },
        { name: 'Actions', description: 'Operator actions; each is recorded in the audit log.' },
      ],
    },
  });
}
