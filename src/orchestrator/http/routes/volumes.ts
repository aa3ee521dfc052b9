import { createRoute, z } from '@hono/zod-openapi';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import {
  attachVolumeRequestSchema,
  createVolumeRequestSchema,
  detachVolumeRequestSchema,
  volumeLocationListSchema,
  volumeSchema,
} from '../../../contract/volume.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { createHeaders } from '../../../http/api/idempotency.ts';
import { getVolume } from '../../model/rows.ts';
import { attachVolume, detachVolume } from '../../volumes/attach.ts';
import { createVolume } from '../../volumes/create.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { listVolumeLocations } from '../../volumes/storage.ts';
import { toVolume } from '../../volumes/transition.ts';
import { forRequester, useCaseOn } from '../authentication.ts';
import { markReplay } from '../conditional.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

const oneVolume = z.object({ volumeId: z.string() });
const shared = { tags: ['Volumes'], security: bearer };

const locationsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/volumes/locations',
  operationId: 'listVolumeLocations',
  summary: 'Where volumes are sold',
  description: 'Each `id` is a region token of the offers: a volume attaches to instances of its own region.',
  responses: errors.replies(200, 'The locations.', volumeLocationListSchema, ['unauthorized']),
});

const createExample = { name: 'data', size_gb: 500, region: 'eu-frankfurt' };

const createVolumeRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/volumes',
  operationId: 'createVolume',
  summary: 'Create a volume',
  description:
    'Answers at once: poll the volume until it is AVAILABLE, or ATTACHED if `instance_ids` is given.',
  request: {
    headers: createHeaders,
    body: { required: true, content: jsonContent(nullAsAbsent(createVolumeRequestSchema), createExample) },
  },
  responses: errors.replies(201, 'Accepted: CREATING.', volumeSchema, [
    'unauthorized',
    'capacity_unavailable',
    'quota_exceeded',
    'idempotency_mismatch',
    ...errors.ofBodies,
  ]),
});

const getRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/volumes/{volumeId}',
  operationId: 'getVolume',
  summary: 'Current state of a volume',
  description:
    'Poll it while its status ends in -ING. 404 means that it is deleted or never belonged to this account.',
  request: { params: oneVolume },
  responses: errors.replies(200, 'The volume.', volumeSchema, ['unauthorized', 'not_found']),
});

const deleteRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/volumes/{volumeId}',
  operationId: 'deleteVolume',
  summary: 'Delete a volume that is not attached',
  description:
    'It is DELETING until the platform proves that it is gone, then 404. An attached volume is 409.',
  request: { params: oneVolume },
  responses: {
    204: { description: 'Deletion has begun.' },
    ...errors.responses('unauthorized', 'not_found', 'volume_attached'),
  },
});

const attachRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/volumes/{volumeId}/attach',
  operationId: 'attachVolume',
  summary: 'Attach a volume',
  description:
    'To each of `instance_ids`; an instance that already has it counts as success. The volume is ATTACHING, then ATTACHED.',
  request: { params: oneVolume, body: { required: true, content: jsonContent(attachVolumeRequestSchema) } },
  responses: errors.replies(200, 'ATTACHING, then ATTACHED.', volumeSchema, [
    'unauthorized',
    'not_found',
    'invalid_state',
    'volume_attached',
    ...errors.ofBodies,
  ]),
});

const detachRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/volumes/{volumeId}/detach',
  operationId: 'detachVolume',
  summary: 'Detach a volume',
  description:
    'From `instance_ids`, or from all instances if none is given. It is DETACHING until the platform has detached it.',
  request: { params: oneVolume, body: { required: false, content: jsonContent(detachVolumeRequestSchema) } },
  responses: errors.replies(200, 'DETACHING until the attachment record is gone.', volumeSchema, [
    'unauthorized',
    'not_found',
    ...errors.ofBodies,
  ]),
});

/** O: Volumes (optional tier). */
export function volumeRoutes(deps: HttpDeps) {
  const { store, rateLimits } = deps;
  const { volumes } = store.read;
  const on = useCaseOn(deps);
  return createRouter()
    .openapi(locationsRoute, (context) => context.json({ locations: listVolumeLocations(deps) }, 200))
    .openapi(createVolumeRoute, async (context) => {
      const { accountId } = context.get('principal');
      rateLimits.admitCreate(accountId);
      const { 'idempotency-key': key } = context.req.valid('header');
      const requestId = context.get('requestId');
      const request = context.req.valid('json');
      const created = await createVolume(forRequester(deps, context), accountId, request, { key, requestId });
      context.set('made', { volume: created.record.id });
      return context.json(await toVolume(volumes, markReplay(context, created)), 201);
    })
    .openapi(getRoute, async (context) => {
      const record = await getVolume(
        volumes,
        context.get('principal').accountId,
        context.req.valid('param').volumeId,
      );
      return context.json(await toVolume(volumes, record), 200);
    })
    .openapi(deleteRoute, async (context) => {
      await deleteVolume(...on(context, context.req.valid('param').volumeId));
      return context.body(null, 204);
    })
    .openapi(attachRoute, async (context) => {
      const { instance_ids: instanceIds } = context.req.valid('json');
      const record = await attachVolume(...on(context, context.req.valid('param').volumeId), instanceIds);
      return context.json(await toVolume(volumes, record), 200);
    })
    .openapi(detachRoute, async (context) => {
      const { instance_ids: instanceIds } = context.req.valid('json');
      const record = await detachVolume(...on(context, context.req.valid('param').volumeId), instanceIds);
      return context.json(await toVolume(volumes, record), 200);
    });
}
