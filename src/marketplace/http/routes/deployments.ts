import { createRoute, z } from '@hono/zod-openapi';
import type { Context, TypedResponse } from 'hono';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { ListStreams } from '../../../http/api/list-streams.ts';
import type { Log } from '../../../ports/log.ts';
import {
  createDeploymentSchema,
  type Deployment,
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
import { createRouter, errors, ofTeams } from '../errors.ts';

const oneDeployment = z.object({ deploymentId: z.string() });
const shared = { tags: ['Deployments'], security: bearer };

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

const createRouteOfDeployment = createRoute({
  ...shared,
  method: 'post',
  path: '/api/deployments',
  operationId: 'createDeployment',
  summary: 'Deploy an offer',
  description:
    'Buys a machine of an offer in one of its `clusters`, with a saved key or with `ssh_public_key`. Poll until it is `running`: then `sshCommand` is set and billing begins.',
  request: {
    body: {
      required: true,
      content: jsonContent(nullAsAbsent(createDeploymentSchema, 'ssh_public_key'), createExample),
    },
  },
  responses: errors.replies(201, 'Accepted: deploying.', deploymentSchema, [
    ...ofTeams,
    'CHANGE_IN_PROGRESS',
    ...errors.ofBodies,
  ]),
});

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/deployments',
  operationId: 'listDeployments',
  summary: 'The deployments',
  description:
    "Deployments of the caller's teams, or of one team. `status=active` lists those that are deploying, running or stopped; `inactive` lists those that have ended.",
  request: {
    query: z.object({
      userId: z.string().optional().meta({ description: "Must be the caller's own." }),
      teamId: z.string().optional(),
      status: z.enum(deploymentFilters).optional(),
      limit: limitSchema.meta({ description: 'Default: all.' }),
      page: pageSchema,
    }),
  },
  responses: errors.replies(200, 'The newest first.', z.array(deploymentSchema), ofTeams),
});

const readRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/deployments/{deploymentId}',
  operationId: 'getDeployment',
  summary: 'One deployment',
  description: 'Its state, rates, cost so far, and the SSH command once it runs.',
  request: { params: oneDeployment },
  responses: errors.replies(200, 'The deployment.', deploymentSchema, ofTeams),
});

const renameRoute = createRoute({
  ...shared,
  method: 'patch',
  path: '/api/deployments/{deploymentId}',
  operationId: 'renameDeployment',
  summary: 'Rename a deployment',
  description: 'Only `name` can be changed: a label that is stored verbatim.',
  request: {
    params: oneDeployment,
    body: { required: true, content: jsonContent(renameDeploymentSchema) },
  },
  responses: errors.replies(200, 'The deployment.', deploymentSchema, [...ofTeams, ...errors.ofBodies]),
});

const terminateRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/api/deployments/{deploymentId}',
  operationId: 'terminateDeployment',
  summary: 'Terminate a deployment',
  description:
    'Ends a running or stopped deployment and its billing, and deletes its disk; its volumes are kept. Refused until the minimum runtime is over: see `can-terminate`.',
  request: { params: oneDeployment },
  responses: errors.replies(200, 'The deployment is terminated.', terminatedSchema, ofTeams),
});

const canTerminateRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/deployments/{deploymentId}/can-terminate',
  operationId: 'canTerminateDeployment',
  summary: 'Whether a deployment may be terminated now',
  description: 'Minutes run, and minutes left of the minimum runtime. Time stopped does not count.',
  request: { params: oneDeployment },
  responses: errors.replies(200, 'The check.', terminationCheckSchema, ofTeams),
});

const NONE = { items: [], isAll: true };

async function* following<Page>(first: Page, rest: AsyncIterable<Page>): AsyncGenerator<Page, void> {
  yield first;
  yield* rest;
}

/** A response with a list that is already JSON. */
function respond(
  context: Context<HttpEnv>,
  body: string | ReadableStream | null,
): TypedResponse<Deployment[], 200, 'json'> {
  const headers = { 'Content-Type': 'application/json' };
  const response =
    typeof body === 'string' ? context.body(body, 200, headers) : context.newResponse(body, 200, headers);
  return response as unknown as TypedResponse<Deployment[], 200, 'json'>;
}

/** Closes the connection of a list that failed midway, so that the partial list does not look complete. */
function breakOff(context: Context<HttpEnv>, error: unknown, log: Log): boolean {
  errors.log(log, errors.from(error), { request_id: context.get('requestId'), path: context.req.path });
  const outgoing = context.env?.outgoing;
  outgoing?.destroy();
  return outgoing !== undefined;
}

/** M: Deployments, without the lifecycle. */
export function deploymentRoutes(deps: HttpDeps) {
  const listStreams = new ListStreams(
    (_limit, seconds) => new RateLimited({ windowSeconds: seconds, retryAfterSeconds: seconds }),
  );
  return createRouter()
    .openapi(createRouteOfDeployment, async (context) => {
      const requestId = context.get('requestId');
      const made = await createDeployment(deps, context.get('caller'), context.req.valid('json'), {
        requestId,
      });
      context.set('made', { deployment: made.id });
      return context.json(made, 201);
    })
    .openapi(listRoute, async (context) => {
      const caller = context.get('caller');
      const pages = pagesOfDeployments(deps, caller, context.req.valid('query'));
      const { value: first = NONE } = await pages.next();
      if (first.isAll) return respond(context, `[${first.items.join()}]`);
      if (context.req.method === 'HEAD') return respond(context, null);
      const list = { head: '[', pages: following(first, pages), tail: ']' };
      const { signal } = context.req.raw;
      return respond(
        context,
        listStreams.open(caller.userId, list, signal, (error) => breakOff(context, error, deps.log)),
      );
    })
    .openapi(readRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await readDeployment(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(renameRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      const renamed = renameDeployment(deps, context.get('caller'), deploymentId, context.req.valid('json'));
      return context.json(await renamed, 200);
    })
    .openapi(terminateRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await terminateDeployment(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(canTerminateRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await canTerminate(deps, context.get('caller'), deploymentId), 200);
    });
}
