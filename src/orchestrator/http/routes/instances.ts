import { createRoute, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { type Issue, invalidRequest } from '../../../contract/errors.ts';
import {
  type CreateInstanceRequest,
  createInstanceRequestSchema,
  type Instance,
  type InstanceList,
  instanceListSchema,
  instanceSchema,
} from '../../../contract/instance.ts';
import { toIssues } from '../../../contract/issue-words.ts';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { bearer, failureOf, jsonContent } from '../../../http/api/create-app.ts';
import { createHeaders } from '../../../http/api/idempotency.ts';
import { pathsOfUnplainText } from '../../../ports/plain-text.ts';
import type { Offering } from '../../catalog/catalog.ts';
import { createInstance } from '../../instances/create.ts';
import { destroyInstance } from '../../instances/destroy.ts';
import { listInstances } from '../../instances/list.ts';
import { findPlanIssues } from '../../instances/plan.ts';
import { toEtag } from '../../instances/polled-reads.ts';
import { startInstance, stopInstance } from '../../instances/power.ts';
import { toInstance } from '../../instances/transition.ts';
import type { InstanceRecord } from '../../model/records.ts';
import { forRequester, requestedBy, useCaseOn } from '../authentication.ts';
import { markReplay, respondPrepared, respondStreamed } from '../conditional.ts';
import type { HttpDeps, HttpEnv } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

/** O: Instances, rule 1: ids are globally unique, so any `region` is ignored. */
const ignoredRegion = z
  .unknown()
  .optional()
  .openapi({ type: 'string', description: 'Ignored: instance ids are globally unique.' });
const oneInstance = {
  params: z.object({ instanceId: z.string() }),
  query: z.object({ region: ignoredRegion }),
};
const shared = { tags: ['Instances'], security: bearer };

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances',
  operationId: 'listInstances',
  summary: 'Instances that are not destroyed',
  description:
    'All instances of the account, or those of one region. Destroyed instances are not listed; an unknown region gives an empty list.',
  request: { query: z.object({ region: z.string().optional() }) },
  responses: errors.replies(200, 'The instances, oldest first.', instanceListSchema, ['unauthorized']),
});

const createExample = {
  configuration_id: 'h100-sxm-1x',
  region: 'eu-frankfurt',
  name: 'demo',
  ssh_keys: [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
  ],
};

const createRoute_ = createRoute({
  ...shared,
  method: 'post',
  path: '/instances',
  operationId: 'createInstance',
  summary: 'Create an instance',
  description:
    'Answers before the machine exists: poll the instance until it is ONLINE, that is, until its public SSH endpoint accepts each of `ssh_keys`. With an `Idempotency-Key`, a create whose answer was lost can be repeated without creating a second instance.',
  request: {
    headers: createHeaders,
    body: { required: true, content: jsonContent(nullAsAbsent(createInstanceRequestSchema), createExample) },
  },
  responses: errors.replies(
    201,
    'Accepted: PROVISIONING. With `Idempotent-Replayed: true`, an earlier one in its current state.',
    instanceSchema,
    [
      'unauthorized',
      'cloud_init_unsupported',
      'capacity_unavailable',
      'quota_exceeded',
      'idempotency_mismatch',
      ...errors.ofBodies,
    ],
  ),
});

const getRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/instances/{instanceId}',
  operationId: 'getInstance',
  summary: 'Current state of an instance, for polling',
  description:
    'Poll it every 10 to 30 seconds. 404 means that the instance is destroyed or never belonged to this account; an uncertain state is 503. With `If-None-Match`, an unchanged instance is 304.',
  request: oneInstance,
  responses: errors.replies(200, 'The instance.', instanceSchema, ['unauthorized', 'not_found']),
});

const destroyRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/instances/{instanceId}',
  operationId: 'destroyInstance',
  summary: 'Destroy an instance, whatever its state',
  description:
    'It is DESTROYING until its machine and disk are proved gone, then 404. The request can be repeated at any time; 404 then counts as success.',
  request: oneInstance,
  responses: errors.replies(200, 'Destruction has begun.', instanceSchema, ['unauthorized', 'not_found']),
});

const startRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/instances/{instanceId}/start',
  operationId: 'startInstance',
  summary: 'Start a stopped instance',
  description:
    'Keeps the disk, and the address if the platform allows it. If no capacity is left, or the platform cannot resume, it is 409 and the instance stays STOPPED.',
  request: oneInstance,
  responses: errors.replies(
    200,
    'Starting: it stays STOPPED until its SSH endpoint is live again, then it is ONLINE.',
    instanceSchema,
    [
      'unauthorized',
      'not_found',
      'invalid_state',
      'operation_in_progress',
      'resume_unsupported',
      'capacity_unavailable',
      ...errors.ofBodies,
    ],
  ),
});

const stopRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/instances/{instanceId}/stop',
  operationId: 'stopInstance',
  summary: 'Stop an instance, keeping its disk',
  description: 'The machine is shut down and keeps its disk. Only an ONLINE instance can be stopped.',
  request: oneInstance,
  responses: errors.replies(200, 'STOPPING, then STOPPED.', instanceSchema, [
    'unauthorized',
    'not_found',
    'invalid_state',
    'operation_in_progress',
    ...errors.ofBodies,
  ]),
});

type Order = (deps: HttpDeps, accountId: string, id: string) => Promise<InstanceRecord>;

/** The handler of an order about one instance. */
export const ordering = (deps: HttpDeps, order: Order) => async (context: Context<HttpEnv>) => {
  const requested = useCaseOn(deps)(context, context.req.param('instanceId') ?? '');
  return context.json(toInstance(await order(...requested)), 200);
};

/** Answers 400 with the issues of the schema, and those of the catalog about the other fields. */
async function refuseCreate(deps: Offering, issues: Issue[], body: Promise<object>): Promise<never> {
  throw invalidRequest([...issues, ...findPlanIssues(deps, wellFormedFields({ ...(await body) }))]);
}

/** The fields that are valid by themselves, so that one reply reports everything that is wrong. */
function wellFormedFields(body: Record<string, unknown>): Partial<CreateInstanceRequest> {
  const fields = Object.entries(createInstanceRequestSchema.shape).flatMap(([name, schema]) => {
    const field = schema.safeParse(body[name]);
    const isValid = field.data !== undefined && pathsOfUnplainText(field.data).length === 0;
    return isValid ? [[name, field.data]] : [];
  });
  return Object.fromEntries(fields);
}

const HEAD = '{"instances":[';
const TAIL = ']}';
const NONE = { items: [], isLast: true };

/** O: Instances. */
export function instanceRoutes(deps: HttpDeps) {
  const { store, polledReads, rateLimits, listStreams } = deps;
  return createRouter()
    .openapi(listRoute, async (context) => {
      const { accountId } = context.get('principal');
      const { region } = context.req.valid('query');
      const prepare = (ids: readonly string[]) => polledReads.bodiesOf(ids);
      const pages = listInstances(store.read.instances, prepare, accountId, region);
      const { value: first = NONE } = await pages.next();
      // A HEAD has no body.
      if (!first.isLast && context.req.method === 'HEAD') context.set('isStreamed', true);
      else if (!first.isLast) {
        const list = { head: HEAD, first, rest: pages, tail: TAIL };
        return respondStreamed<InstanceList>(context, listStreams.open(accountId, list, context));
      }
      const body = HEAD + first.items.join() + TAIL;
      return respondPrepared<InstanceList>(context, { body, etag: toEtag(body) });
    })
    .openapi(
      createRoute_,
      async (context) => {
        const { accountId } = context.get('principal');
        rateLimits.admitCreate(accountId);
        const { 'idempotency-key': key } = context.req.valid('header');
        const requestId = context.get('requestId');
        const created = await createInstance(
          forRequester(deps, context),
          accountId,
          context.req.valid('json'),
          {
            key,
            requestId,
            createdBy: requestedBy(context),
          },
        );
        context.set('made', { instance: created.record.id });
        return context.json(toInstance(markReplay(context, created)), 201);
      },
      (result, { req }) => {
        const failure = failureOf(result);
        return failure && refuseCreate(deps, toIssues(failure), req.json());
      },
    )
    .openapi(getRoute, async (context) => {
      const { accountId } = context.get('principal');
      const { instanceId } = context.req.valid('param');
      const owner = polledReads.cached(instanceId) ?? (await store.read.instances.byId(instanceId));
      if (owner?.accountId === accountId) rateLimits.admitPoll(instanceId);
      else rateLimits.admitRequest(accountId);
      return respondPrepared<Instance>(context, await polledReads.get(accountId, instanceId));
    })
    .openapi(destroyRoute, ordering(deps, destroyInstance))
    .openapi(startRoute, ordering(deps, startInstance))
    .openapi(stopRoute, ordering(deps, stopInstance));
}
