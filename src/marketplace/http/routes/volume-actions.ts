import { createRoute, z } from '@hono/zod-openapi';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { attachedVolumeSchema, attachRequestSchema, detachedVolumeSchema } from '../../contract/volume.ts';
import { attachVolume, detachVolume } from '../../volumes/attach.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors, ofTeams } from '../errors.ts';

const shared = {
  tags: ['Volumes'],
  security: bearer,
  request: {
    params: z.object({ volumeId: z.string() }),
    body: { required: true, content: jsonContent(attachRequestSchema) },
  },
};
const inFlight = ['CHANGE_IN_PROGRESS', 'PROVIDER_REFUSED', 'PROVIDER_SLOW'] as const;
const failures = [...ofTeams, ...inFlight, ...errors.ofBodies] as const;

const attachRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/volumes/{volumeId}/attach',
  operationId: 'attachVolume',
  summary: 'Attach a volume to a running deployment',
  description:
    'The deployment must be running, at the same provider and in the same region. With some providers the machine restarts.',
  responses: errors.replies(200, 'It is attached.', attachedVolumeSchema, failures),
});

const detachRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/volumes/{volumeId}/detach',
  operationId: 'detachVolume',
  summary: 'Detach a volume from a deployment',
  description: 'Its data is kept.',
  responses: errors.replies(200, 'It is detached.', detachedVolumeSchema, failures),
});

/** M: Volumes: attachments. */
export function volumeActionRoutes(deps: HttpDeps) {
  return createRouter()
    .openapi(attachRoute, async (context) => {
      const { volumeId } = context.req.valid('param');
      const { deploymentId } = context.req.valid('json');
      return context.json(await attachVolume(deps, context.get('caller'), volumeId, deploymentId), 200);
    })
    .openapi(detachRoute, async (context) => {
      const { volumeId } = context.req.valid('param');
      const { deploymentId } = context.req.valid('json');
      return context.json(await detachVolume(deps, context.get('caller'), volumeId, deploymentId), 200);
    });
}
