import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { ListStreams } from '../../../http/api/list-streams.ts';
import {
  createDeploymentSchema,
  deploymentFilters,
  deploymentSchema,
  renameDeploymentSchema,
  terminatedSchema,
  terminationCheckSchema,
} from '../../contract/deployment.ts';
import { RateLimited } from '../../contract/errors.ts';
import { limitSchema, pageSchema } from '../../contract/values.ts';
import { createDeployment } from '../../deployments/create.ts';
import { pagesOfDeployments, readDeployment, renameDeployment } from '../../deployments/read.ts';
import { canTerminate, terminateDeployment } from '../../deployments/terminate.ts';
import type { HttpDeps, HttpEnv } from '../deps.ts';
import { errors, ofTeams } from '../errors.ts';
import { Routes } from '../route.ts';

const oneDeployment = { deploymentId: z.string() };

const createExample = {
  provider: 'provider-d',
  offerId: 'd-h100-pcie-1x',
  gpuType: 'H100_PCIE',
  gpuCount: 1,
  region: 'us-phoenix',
  operatingSystem: 'ubuntu-24.04-cuda-13.0',
  instanceType: 'DEDICATED',
  name: 'demo',
  ssh_public_key:
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
};

const NONE = { items: [], isAll: true };

/** A response with a list that is already JSON. */
function respond(context: Context<HttpEnv>, body: string | ReadableStream | null): Response {
  const headers = { 'Content-Type': 'application/json' };
  return typeof body === 'string'
    ? context.body(body, 200, headers)
    : context.newResponse(body, 200, headers);
}

/** M: Deployments, without the lifecycle. */
export function deploymentRoutes(deps: HttpDeps) {
  const listStreams = new ListStreams(
    errors,
    deps.log,
    (_limit, seconds) => new RateLimited({ windowSeconds: seconds, retryAfterSeconds: seconds }),
  );
  return new Routes('Deployments')
    .add('post', '/api/deployments', {
      operationId: 'createDeployment',
      summary: 'Deploy an offer',
      description:
        'Buys a machine of an offer in one of its `clusters`, with a saved key or with `ssh_public_key`. Poll until it is `running`: then `sshCommand` is set and billing begins.',
      body: nullAsAbsent(createDeploymentSchema, 'ssh_public_key'),
      example: createExample,
      status: 201,
      isOnce: true,
      reply: ['Accepted: deploying.', deploymentSchema, [...ofTeams, 'CHANGE_IN_PROGRESS']],
      run: async ({ caller, body, once, context }) => {
        const made = await createDeployment(deps, caller, body, {
          requestId: context.get('requestId'),
          once,
        });
        context.set('made', { deployment: made.id });
        return made;
      },
    })
    .add('get', '/api/deployments', {
      operationId: 'listDeployments',
      summary: 'The deployments',
      description:
        "Deployments of the caller's teams, or of one team. `status=active` lists those that are deploying, running or stopped; `inactive` lists those that have ended.",
      query: {
        userId: z.string().optional().meta({ description: "Must be the caller's own." }),
        teamId: z.string().optional(),
        status: z.enum(deploymentFilters).optional(),
        limit: limitSchema.meta({ description: 'Default: all.' }),
        page: pageSchema,
      },
      reply: ['The newest first.', z.array(deploymentSchema), ofTeams],
      run: async ({ caller, query, context }) => {
        const pages = pagesOfDeployments(deps, caller, query);
        const { value: first = NONE } = await pages.next();
        if (first.isAll) return respond(context, `[${first.items.join()}]`);
        if (context.req.method === 'HEAD') return respond(context, null);
        const list = { head: '[', first, rest: pages, tail: ']' };
        return respond(context, listStreams.open(caller.userId, list, context));
      },
    })
    .add('get', '/api/deployments/{deploymentId}', {
      operationId: 'getDeployment',
      summary: 'One deployment',
      description: 'Its state, rates, cost so far, and the SSH command once it runs.',
      params: oneDeployment,
      reply: ['The deployment.', deploymentSchema, ofTeams],
      run: ({ caller, params }) => readDeployment(deps, caller, params.deploymentId),
    })
    .add('patch', '/api/deployments/{deploymentId}', {
      operationId: 'renameDeployment',
      summary: 'Rename a deployment',
      description: 'Only `name` can be changed: a label that is stored verbatim.',
      params: oneDeployment,
      body: renameDeploymentSchema,
      reply: ['The deployment.', deploymentSchema, ofTeams],
      run: ({ caller, params, body }) => renameDeployment(deps, caller, params.deploymentId, body),
    })
    .add('delete', '/api/deployments/{deploymentId}', {
      operationId: 'terminateDeployment',
      summary: 'Terminate a deployment',
      description:
        'Ends a running or stopped deployment and its billing, and deletes its disk; its volumes are kept. Refused until the minimum runtime is over: see `can-terminate`.',
      params: oneDeployment,
      reply: ['The deployment is terminated.', terminatedSchema, ofTeams],
      run: ({ caller, params }) => terminateDeployment(deps, caller, params.deploymentId),
    })
    .add('get', '/api/deployments/{deploymentId}/can-terminate', {
      operationId: 'canTerminateDeployment',
      summary: 'Whether a deployment may be terminated now',
      description: 'Minutes run, and minutes left of the minimum runtime. Time stopped does not count.',
      params: oneDeployment,
      reply: ['The check.', terminationCheckSchema, ofTeams],
      run: ({ caller, params }) => canTerminate(deps, caller, params.deploymentId),
    });
}
