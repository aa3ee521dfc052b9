import { createRoute, z } from '@hono/zod-openapi';
import { type Issue, invalidRequest } from '../../../contract/errors.ts';
import {
  type CreateInstanceRequest,
  createInstanceRequestSchema,
  instanceListSchema,
  instanceSchema,
} from '../../../contract/instance.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { createInstance } from '../../instances/create.ts';
import { destroyInstance } from '../../instances/destroy.ts';
import { findPlanIssues } from '../../instances/plan.ts';
import { listInstances } from '../../instances/read.ts';
import { startInstance } from '../../instances/start.ts';
import { stopInstance } from '../../instances/stop.ts';
import { toInstance } from '../../instances/to-instance.ts';
import { respondPrepared } from '../conditional.ts';
import type { HttpDeps } from '../deps.ts';
import { errorResponses, toIssues } from '../error-responses.ts';
import { createHeaders, markReplay } from '../idempotency.ts';
import { bearer, createRouter, jsonContent } from './router.ts';

/** O: Instances, rule 1: ids are globally unique, so `region` is ignored, whatever it is. */
const ignoredRegion = z
  .unknown()
  .optional()
  .openapi({ type: 'string', description: 'Ignored: instance ids are globally unique.' });
const oneInstance = {
  params: z.object({ instanceId: z.string() }),
  query: z.object({ region: ignoredRegion }),
};
const instanceResponse = (description: string) => ({
  200: { description, content: jsonContent(instanceSchema) },
});
const shared = { tags: ['Instances'], security: bearer };

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances',
  operationId: 'listInstances',
  summary: 'The instances that are not destroyed',
  request: { query: z.object({ region: z.string().optional() }) },
  responses: {
    200: { description: 'The instances, oldest first.', content: jsonContent(instanceListSchema) },
    ...errorResponses('unauthorized'),
  },
});

const createRoute_ = createRoute({
  ...shared,
  method: 'post',
  path: '/instances',
  operationId: 'createInstance',
  summary: 'Create an instance',
  request: {
    headers: createHeaders,
    body: { required: true, content: jsonContent(createInstanceRequestSchema) },
  },
  responses: {
    201: {
      description:
        'Accepted: PROVISIONING. With `Idempotent-Replayed: true`, an earlier one in its current state.',
      content: jsonContent(instanceSchema),
    },
    ...errorResponses(
      'unauthorized',
      'cloud_init_unsupported',
      'capacity_unavailable',
      'idempotency_mismatch',
      'payload_too_large',
      'request_timeout',
    ),
  },
});

const getRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances/{instanceId}',
  operationId: 'getInstance',
  summary: 'An instance as it is now: the polled read',
  request: oneInstance,
  responses: { ...instanceResponse('The instance.'), ...errorResponses('unauthorized', 'not_found') },
});

const destroyRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/instances/{instanceId}',
  operationId: 'destroyInstance',
  summary: 'Destroy an instance, whatever its state',
  request: oneInstance,
  responses: {
    ...instanceResponse('Destruction has begun.'),
    ...errorResponses('unauthorized', 'not_found'),
  },
});

const startRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/instances/{instanceId}/start',
  operationId: 'startInstance',
  summary: 'Start a stopped instance',
  request: oneInstance,
  responses: {
    ...instanceResponse('Starting: it reads STOPPED until its SSH endpoint is live again, then ONLINE.'),
    ...errorResponses(
      'unauthorized',
      'not_found',
      'invalid_state',
      'operation_in_progress',
      'resume_unsupported',
      'capacity_unavailable',
      'payload_too_large',
      'request_timeout',
    ),
  },
});

const stopRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/instances/{instanceId}/stop',
  operationId: 'stopInstance',
  summary: 'Stop an instance, keeping its disk',
  request: oneInstance,
  responses: {
    ...instanceResponse('STOPPING, then STOPPED.'),
    ...errorResponses(
      'unauthorized',
      'not_found',
      'invalid_state',
      'operation_in_progress',
      'payload_too_large',
      'request_timeout',
    ),
  },
});

/** A 400 with what the schema found, and what the catalog says of the other fields. */
async function refuseCreate(catalog: Catalog, issues: Issue[], body: Promise<object>): Promise<never> {
  throw invalidRequest([...issues, ...findPlanIssues(catalog, wellFormedFields({ ...(await body) }))]);
}

/** The fields that are right by themselves, so that a request is told of all that is wrong with it at once. */
function wellFormedFields(body: Record<string, unknown>): Partial<CreateInstanceRequest> {
  const fields = Object.entries(createInstanceRequestSchema.shape).flatMap(([name, schema]) => {
    const field = schema.safeParse(body[name]);
    return field.success && field.data !== undefined ? [[name, field.data]] : [];
  });
  return Object.fromEntries(fields);
}

/** O: Instances. */
export function instanceRoutes(deps: HttpDeps) {
  const { store, polledReads, rateLimits } = deps;
  return createRouter()
    .openapi(listRoute, async (context) => {
      const { accountId } = context.get('principal');
      const records = await listInstances(store.read.instances, accountId, context.req.valid('query').region);
      return context.json({ instances: records.map(toInstance) }, 200);
    })
    .openapi(
      createRoute_,
      async (context) => {
        const { accountId } = context.get('principal');
        rateLimits.admitCreate(accountId);
        const { 'idempotency-key': key } = context.req.valid('header');
        const created = await createInstance(deps, accountId, context.req.valid('json'), key);
        return context.json(toInstance(markReplay(context, created)), 201);
      },
      (result, { req }) =>
        result.success ? undefined : refuseCreate(deps.catalog, toIssues(result.error), req.json()),
    )
    .openapi(getRoute, async (context) => {
      const { accountId } = context.get('principal');
      const { instanceId } = context.req.valid('param');
      const owner = polledReads.kept(instanceId) ?? (await store.read.instances.byId(instanceId));
      if (owner?.accountId === accountId) rateLimits.admitPoll(instanceId);
      else rateLimits.admitRequest(accountId);
      return respondPrepared(context, await polledReads.get(accountId, instanceId));
    })
    .openapi(destroyRoute, async (context) => {
      const record = await destroyInstance(
        deps,
        context.get('principal').accountId,
        context.req.valid('param').instanceId,
      );
      return context.json(toInstance(record), 200);
    })
    .openapi(startRoute, async (context) => {
      const record = await startInstance(
        deps,
        context.get('principal').accountId,
        context.req.valid('param').instanceId,
      );
      return context.json(toInstance(record), 200);
    })
    .openapi(stopRoute, async (context) => {
      const record = await stopInstance(
        deps,
        context.get('principal').accountId,
        context.req.valid('param').instanceId,
      );
      return context.json(toInstance(record), 200);
    });
}
