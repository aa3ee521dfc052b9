import { createRoute, z } from '@hono/zod-openapi';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { successSchema } from '../../contract/ssh-key.ts';
import { limitSchema, pageSchema } from '../../contract/values.ts';
import {
  createVolumeSchema,
  updatedVolumeSchema,
  updateVolumeSchema,
  volumeFilters,
  volumePageSchema,
  volumePricingSchema,
  volumeRegionsSchema,
  volumeSchema,
} from '../../contract/volume.ts';
import { createVolume } from '../../volumes/create.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { listVolumeRegions, readVolumePricing } from '../../volumes/locations.ts';
import { listVolumes, readVolume } from '../../volumes/read.ts';
import { updateVolume } from '../../volumes/update.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors, ofTeams } from '../errors.ts';

const oneVolume = z.object({ volumeId: z.string() });
const shared = { tags: ['Volumes'], security: bearer };
const withProvider = [...ofTeams, 'CHANGE_IN_PROGRESS', 'PROVIDER_REFUSED'] as const;
const withBody = [...withProvider, ...errors.ofBodies] as const;

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/volumes',
  operationId: 'listVolumes',
  summary: 'The volumes of a team',
  description: 'In pages; `status` selects one status.',
  request: {
    query: z.object({
      teamId: z.string().optional().meta({ description: 'Default: the current team.' }),
      page: pageSchema,
      limit: limitSchema.meta({ description: 'Default 20.' }),
      status: z.enum(volumeFilters).optional(),
    }),
  },
  responses: errors.replies(200, 'The newest first.', volumePageSchema, ofTeams),
});

const createExample = { name: 'data', sizeInGb: 500, provider: 'provider-a', region: 'us-east' };

const createRouteOfVolume = createRoute({
  ...shared,
  method: 'post',
  path: '/api/volumes',
  operationId: 'createVolume',
  summary: 'Create a volume',
  description:
    '`/api/volumes/regions` lists the regions with volumes. With `deploymentId` the volume is also attached, where the provider supports it.',
  request: {
    body: { required: true, content: jsonContent(nullAsAbsent(createVolumeSchema), createExample) },
  },
  responses: errors.replies(
    201,
    'available, or attached where deploymentId was given.',
    volumeSchema,
    withBody,
  ),
});

const pricingRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/volumes/pricing',
  operationId: 'getVolumePricing',
  summary: 'Price of volume storage',
  description: 'Price per gigabyte and hour, as also listed by `/api/volumes/regions`.',
  request: {
    query: z.object({
      provider: z.string().optional().meta({ description: 'Required.' }),
      cloudId: z.string().optional().meta({ description: 'With region.' }),
      region: z.string().optional(),
    }),
  },
  responses: errors.replies(200, 'The price.', volumePricingSchema, ['UNAUTHORIZED', 'PROVIDER_REFUSED']),
});

const regionsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/volumes/regions',
  operationId: 'listVolumeRegions',
  summary: 'Regions with volumes',
  description: 'With size limits, price, and whether offers are sold in each region.',
  request: { query: z.object({ provider: z.string().optional().meta({ description: 'Required.' }) }) },
  responses: errors.replies(200, 'The regions.', volumeRegionsSchema, ['UNAUTHORIZED']),
});

const readRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/volumes/{volumeId}',
  operationId: 'getVolume',
  summary: 'A volume with fresh usage data',
  description:
    'The size is the billed size, and billing began at `startedAt`; `usedCapacityBytes` is the value that the provider reported in the last 15 minutes, if any.',
  request: { params: oneVolume },
  responses: errors.replies(200, 'The volume.', volumeSchema, ofTeams),
});

const updateRoute = createRoute({
  ...shared,
  method: 'patch',
  path: '/api/volumes/{volumeId}',
  operationId: 'updateVolume',
  summary: 'Rename or enlarge a volume',
  description:
    'Changes name and size, where the provider supports it; a volume never shrinks. A new size is billed at its new rate at once.',
  request: { params: oneVolume, body: { required: true, content: jsonContent(updateVolumeSchema) } },
  responses: errors.replies(200, 'What changed.', updatedVolumeSchema, [...withBody, 'PROVIDER_SLOW']),
});

const deleteRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/api/volumes/{volumeId}',
  operationId: 'deleteVolume',
  summary: 'Delete a volume that is not attached',
  description: 'Deletes all its data. A volume that is attached to an active deployment is refused.',
  request: { params: oneVolume },
  responses: errors.replies(200, 'It is being deleted.', successSchema, withProvider),
});

/** M: Volumes, without attachments. */
export function volumeRoutes(deps: HttpDeps) {
  return createRouter()
    .openapi(listRoute, async (context) =>
      context.json(await listVolumes(deps, context.get('caller'), context.req.valid('query')), 200),
    )
    .openapi(createRouteOfVolume, async (context) => {
      const requestId = context.get('requestId');
      const made = await createVolume(deps, context.get('caller'), context.req.valid('json'), { requestId });
      context.set('made', { volume: made.volumeId });
      return context.json(made, 201);
    })
    .openapi(pricingRoute, (context) =>
      context.json(readVolumePricing(deps, context.req.valid('query')), 200),
    )
    .openapi(regionsRoute, (context) =>
      context.json(listVolumeRegions(deps, context.req.valid('query')), 200),
    )
    .openapi(readRoute, async (context) => {
      const { volumeId } = context.req.valid('param');
      return context.json(await readVolume(deps, context.get('caller'), volumeId), 200);
    })
    .openapi(updateRoute, async (context) => {
      const { volumeId } = context.req.valid('param');
      const updated = updateVolume(deps, context.get('caller'), volumeId, context.req.valid('json'));
      return context.json(await updated, 200);
    })
    .openapi(deleteRoute, async (context) => {
      const { volumeId } = context.req.valid('param');
      return context.json(await deleteVolume(deps, context.get('caller'), volumeId), 200);
    });
}
