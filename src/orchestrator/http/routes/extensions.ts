import { createRoute, z } from '@hono/zod-openapi';
import {
  resizeVolumeRequestSchema,
  restartStatusSchema,
  volumeUsageListSchema,
} from '../../../contract/extensions.ts';
import { instanceSchema } from '../../../contract/instance.ts';
import { volumeSchema } from '../../../contract/volume.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { restartInstance, restartStatus } from '../../instances/power.ts';
import { resizeVolume } from '../../volumes/resize.ts';
import { listVolumeUsage } from '../../volumes/storage.ts';
import { toVolume } from '../../volumes/transition.ts';
import { useCaseOn } from '../authentication.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';
import { ordering } from './instances.ts';

const shared = {
  tags: ['Beyond the contract'],
  security: bearer,
};
const oneInstance = { params: z.object({ instanceId: z.string() }) };

const restartRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/x/instances/{instanceId}/restart',
  operationId: 'restartInstance',
  summary: 'Restart an ONLINE instance: memory is lost; disk, address and status stay',
  description:
    'Where `extras.berth.restart` of its offer is true. GET of the same path shows when it is over.',
  request: oneInstance,
  responses: errors.replies(200, 'Accepted: it stays ONLINE.', instanceSchema, [
    'unauthorized',
    'not_found',
    'invalid_state',
    'operation_in_progress',
    'restart_unsupported',
    ...errors.ofBodies,
  ]),
});

const restartStatusRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/x/instances/{instanceId}/restart',
  operationId: 'getRestart',
  summary: 'Whether a restart is in progress: from acceptance until SSH is proved again or it is given up',
  description:
    'Where `extras.berth.restart` of its offer is true. `since` is present while one is in progress.',
  request: oneInstance,
  responses: errors.replies(200, 'The status.', restartStatusSchema, ['unauthorized', 'not_found']),
});

const resizeRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/x/volumes/{volumeId}/resize',
  operationId: 'resizeVolume',
  summary: 'Enlarge a volume',
  description:
    'Where `extras.berth.volume_resize` is true. The volume shows its old size and price until the resize is done. It can never shrink.',
  request: {
    params: z.object({ volumeId: z.string() }),
    body: { required: true, content: jsonContent(resizeVolumeRequestSchema) },
  },
  responses: errors.replies(200, 'Accepted, or it already has that size: see `size_gb`.', volumeSchema, [
    'unauthorized',
    'not_found',
    'invalid_state',
    'operation_in_progress',
    'volume_attached',
    'resize_unsupported',
    'capacity_unavailable',
    'quota_exceeded',
    ...errors.ofBodies,
  ]),
});

const usageRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/x/volumes/usage',
  operationId: 'listVolumeUsage',
  summary: 'How much of each volume is used',
  description:
    'Where `extras.berth.volume_usage` is true. The platform is asked at most once a minute. A volume is absent while its use is not known.',
  responses: errors.replies(200, 'The volumes of the account.', volumeUsageListSchema, ['unauthorized']),
});

/** Features beyond O:, announced in `Configuration.extras.berth`. */
export function extensionRoutes(deps: HttpDeps) {
  const { store } = deps;
  const on = useCaseOn(deps);
  return createRouter()
    .openapi(restartRoute, ordering(deps, restartInstance))
    .openapi(restartStatusRoute, async (context) => {
      const { accountId } = context.get('principal');
      return context.json(
        await restartStatus(store.read, accountId, context.req.valid('param').instanceId),
        200,
      );
    })
    .openapi(usageRoute, async (context) => {
      const { accountId } = context.get('principal');
      return context.json({ volumes: await listVolumeUsage(deps, accountId) }, 200);
    })
    .openapi(resizeRoute, async (context) => {
      const { size_gb: sizeGb } = context.req.valid('json');
      const record = await resizeVolume(...on(context, context.req.valid('param').volumeId), sizeGb);
      return context.json(await toVolume(store.read.volumes, record), 200);
    });
}
