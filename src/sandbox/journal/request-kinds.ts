import type { z } from 'zod';
import type { Configuration } from '../../contract/configuration.ts';
import { createInstanceRequestSchema } from '../../contract/instance.ts';
import { nullAsAbsent } from '../../contract/nulls.ts';
import { createVolumeRequestSchema, type VolumeLocation } from '../../contract/volume.ts';
import { createDeploymentSchema } from '../../marketplace/contract/deployment.ts';
import type { Offer, OfferPage } from '../../marketplace/contract/offer.ts';
import { editDistance } from '../options.ts';

/** Sends a GET to a server with the sandbox's credential. It is not in the journal. */
export type AskServer = (path: string) => Promise<unknown>;

export interface RequestKind {
  schema: z.ZodType;
  /** Example values of required fields. */
  samples: Readonly<Record<string, unknown>>;
  /** The allowed values of fields, as the server reports them. */
  choices(body: Record<string, unknown>, ask: AskServer): Promise<Record<string, readonly unknown[]>>;
}

const SAMPLE_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com';

const createInstance: RequestKind = {
  schema: nullAsAbsent(createInstanceRequestSchema),
  samples: { ssh_keys: [SAMPLE_KEY] },
  async choices({ configuration_id: id, operating_system_image: image, ...body }, ask) {
    const { configurations } = (await ask('/v1/configurations')) as { configurations: Configuration[] };
    const offer = nearestTo(id, configurations, (configuration) => configuration.id);
    return {
      configuration_id: offer === undefined ? [] : [offer.id],
      region: offer?.regions ?? [],
      ...(image !== undefined && { operating_system_image: offer?.os_options ?? [] }),
      ...(offer?.id !== id && body['root_disk_size_gb'] !== undefined && { root_disk_size_gb: [undefined] }),
      ...(offer?.supports_cloud_init === false && { cloud_init: [undefined] }),
    };
  },
};

const createVolume: RequestKind = {
  schema: nullAsAbsent(createVolumeRequestSchema),
  samples: { name: 'data', size_gb: 100 },
  async choices({ region, type }, ask) {
    const { locations } = (await ask('/v1/volumes/locations')) as { locations: VolumeLocation[] };
    const location = nearestTo(region, locations, ({ id }) => id);
    return {
      region: location === undefined ? [] : [location.id],
      ...(type !== undefined && { type: location?.types ?? [] }),
    };
  },
};

const createDeployment: RequestKind = {
  schema: nullAsAbsent(createDeploymentSchema, 'ssh_public_key'),
  samples: { ssh_public_key: SAMPLE_KEY },
  async choices({ provider, offerId, sshKeyId, ssh_public_key: key }, ask) {
    const { data } = (await ask('/api/gpu-offers?limit=100')) as OfferPage;
    const all = data.flatMap(({ offers }) => offers);
    const own = all.filter((offer) => offer.provider === provider);
    const offer: Offer | undefined = nearestTo(offerId, own.length > 0 ? own : all, (one) => one.offerId);
    if (offer === undefined) return {};
    return {
      provider: [offer.provider],
      offerId: [offer.offerId],
      gpuCount: [offer.gpuCount],
      region: offer.clusters,
      operatingSystem: offer.os_options,
      ...(sshKeyId === undefined && key === undefined && { ssh_public_key: [SAMPLE_KEY] }),
    };
  },
};

/** Returns the details of an operation's requests. Undefined if only its route is known. */
export function kindOf(provider: string, operation: string): RequestKind | undefined {
  if (provider === 'marketplace') return operation === 'createDeployment' ? createDeployment : undefined;
  return { createInstance, createVolume }[operation];
}

/** The most similar choice, or the first if no value was sent. */
function nearestTo<T>(said: unknown, from: readonly T[], nameOf: (one: T) => string): T | undefined {
  if (typeof said !== 'string') return from[0];
  const rated = from.map((one) => ({ one, distance: editDistance(said.slice(0, 255), nameOf(one)) }));
  return rated.sort((a, b) => a.distance - b.distance)[0]?.one;
}
