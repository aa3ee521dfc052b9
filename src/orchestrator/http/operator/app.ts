import type { OpenAPIHono } from '@hono/zod-openapi';
import { operationRoutes } from '../../../operator-kit/http/operation-routes.ts';
import {
  type Authentication,
  assembleOperatorApp,
  type OperatorEnv,
} from '../../../operator-kit/http/router.ts';
import type { InSandbox } from '../../../operator-kit/operation.ts';
import type { Log } from '../../../ports/log.ts';
import { AccountsError } from '../../accounts/accounts.ts';
import { ActionRefused } from '../../operate/actions/refused.ts';
import { type OperationDeps, operations } from '../../operate/operations.ts';
import { errors } from '../errors.ts';
import type { Metrics } from '../metrics.ts';

export interface OperatorDeps extends OperationDeps {
  operators: Authentication;
  metrics: Metrics;
  log: Log;
  /** How many proxies in front of this server add an address to X-Forwarded-For. With 0, the header is ignored. */
  trustedProxies: number;
}

/** The operator API on the admin listener. It accepts only operator keys. `sandbox`: what only a sandbox has. */
export function createOperatorApp<Deps extends OperatorDeps>(
  deps: Deps,
  { nextId, sandbox }: { nextId: () => string; sandbox?: InSandbox<NoInfer<Deps>> },
): OpenAPIHono<OperatorEnv> {
  return assembleOperatorApp({
    ...deps,
    product: 'orchestrator',
    nextId,
    errors,
    routes: [operationRoutes([...operations, ...(sandbox?.operations ?? [])], deps, errors)],
    sandboxUrl: sandbox?.url,
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
