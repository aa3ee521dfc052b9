import { z } from '@hono/zod-openapi';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { successSchema } from '../../contract/ssh-key.ts';
import { limitSchema, pageSchema } from '../../contract/values.ts';
import {
  attachedVolumeSchema,
  attachRequestSchema,
  createVolumeSchema,
  detachedVolumeSchema,
  updatedVolumeSchema,
  updateVolumeSchema,
  volumeFilters,
  volumePageSchema,
  volumePricingSchema,
  volumeRegionsSchema,
  volumeSchema,
} from '../../contract/volume.ts';
import { pausesNow } from '../../model/sales-pause.ts';
import { attachVolume, detachVolume } from '../../volumes/attach.ts';
import { createVolume } from '../../volumes/create.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { listVolumeRegions, readVolumePricing } from '../../volumes/locations.ts';
import { listVolumes, readVolume } from '../../volumes/read.ts';
import { updateVolume } from '../../volumes/update.ts';
import type { HttpDeps } from '../deps.ts';
import { ofTeams } from '../errors.ts';
import { Routes } from '../route.ts';

const oneVolume = { volumeId: z.string() };
const withProvider = [...ofTeams, 'CHANGE_IN_PROGRESS', 'PROVIDER_REFUSED'] as const;
const failures = [...withProvider, 'PROVIDER_SLOW'] as const;

const createExample = { name: 'data', sizeInGb: 500, provider: 'provider-a', region: 'us-east' };

/** M: Volumes. */
export function volumeRoutes(deps: HttpDeps) {
  return new Routes('Volumes')
    .add('get', '/api/volumes', {
      operationId: 'listVolumes',
      summary: 'The volumes of a team',
      description: 'In pages; `status` selects one status.',
      query: {
        teamId: z.string().optional().meta({ description: 'Default: the current team.' }),
        page: pageSchema,
        limit: limitSchema.meta({ description: 'Default 20.' }),
        status: z.enum(volumeFilters).optional(),
      },
      reply: ['The newest first.', volumePageSchema, ofTeams],
      run: ({ caller, query }) => listVolumes(deps, caller, query),
    })
    .add('post', '/api/volumes', {
      operationId: 'createVolume',
      summary: 'Create a volume',
      description:
        '`/api/volumes/regions` lists the regions with volumes. With `deploymentId` the volume is also attached, where the provider supports it.',
      body: nullAsAbsent(createVolumeSchema),
      example: createExample,
      status: 201,
      isOnce: true,
      reply: ['available, or attached where deploymentId was given.', volumeSchema, withProvider],
      run: async ({ caller, body, once, context }) => {
        const made = await createVolume(deps, caller, body, { requestId: context.get('requestId'), once });
        context.set('made', { volume: made.volumeId });
        return made;
      },
    })
    .add('get', '/api/volumes/pricing', {
      operationId: 'getVolumePricing',
      summary: 'Price of volume storage',
      description: 'Price per gigabyte and hour, as also listed by `/api/volumes/regions`.',
      query: {
        provider: z.string().optional().meta({ description: 'Required.' }),
        cloudId: z.string().optional().meta({ description: 'With region.' }),
        region: z.string().optional(),
      },
      reply: ['The price.', volumePricingSchema, ['UNAUTHORIZED', 'PROVIDER_REFUSED']],
      run: ({ query }) => readVolumePricing(deps, query),
    })
    .add('get', '/api/volumes/regions', {
      operationId: 'listVolumeRegions',
      summary: 'Regions with volumes',
      description: 'With size limits, price, and whether offers are sold in each region.',
      query: { provider: z.string().optional().meta({ description: 'Required.' }) },
      reply: ['The regions.', volumeRegionsSchema, ['UNAUTHORIZED']],
      run: async ({ query }) =>
        listVolumeRegions({ ...deps, pauses: await pausesNow(deps.store.read, deps.clock.now()) }, query),
    })
    .add('get', '/api/volumes/{volumeId}', {
      operationId: 'getVolume',
      summary: 'A volume with fresh usage data',
      description:
        'The size is the billed size, and billing began at `startedAt`; `usedCapacityBytes` is the value that the provider reported in the last 15 minutes, if any.',
      params: oneVolume,
      reply: ['The volume.', volumeSchema, ofTeams],
      run: ({ caller, params }) => readVolume(deps, caller, params.volumeId),
    })
    .add('patch', '/api/volumes/{volumeId}', {
      operationId: 'updateVolume',
      summary: 'Rename or enlarge a volume',
      description:
        'Changes name and size, where the provider supports it; a volume never shrinks. A new size is billed at its new rate at once.',
      params: oneVolume,
      body: updateVolumeSchema,
      reply: ['What changed.', updatedVolumeSchema, failures],
      run: ({ caller, params, body }) => updateVolume(deps, caller, params.volumeId, body),
    })
    .add('delete', '/api/volumes/{volumeId}', {
      operationId: 'deleteVolume',
      summary: 'Delete a volume that is not attached',
      description: 'Deletes all its data. A volume that is attached to an active deployment is refused.',
      params: oneVolume,
      reply: ['It is being deleted.', successSchema, withProvider],
      run: ({ caller, params }) => deleteVolume(deps, caller, params.volumeId),
    })
    .add('post', '/api/volumes/{volumeId}/attach', {
      params: oneVolume,
      body: attachRequestSchema,
      operationId: 'attachVolume',
      summary: 'Attach a volume to a running deployment',
      description:
        'The deployment must be running, at the same provider and in the same region. With some providers the machine restarts.',
      reply: ['It is attached.', attachedVolumeSchema, failures],
      run: ({ caller, params, body }) => attachVolume(deps, caller, params.volumeId, body.deploymentId),
    })
    .add('post', '/api/volumes/{volumeId}/detach', {
      params: oneVolume,
      body: attachRequestSchema,
      operationId: 'detachVolume',
      summary: 'Detach a volume from a deployment',
      description: 'Its data is kept.',
      reply: ['It is detached.', detachedVolumeSchema, failures],
      run: ({ caller, params, body }) => detachVolume(deps, caller, params.volumeId, body.deploymentId),
    });
}
