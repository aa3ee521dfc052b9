import type { CloudInit } from '../../contract/cloud-init.ts';
import type { Issue } from '../../contract/errors.ts';
import type { CreateInstanceRequest } from '../../contract/instance.ts';
import type { CreateDeployment, RequestedCloudInit } from '../contract/deployment.ts';
import { invalid, invalidRequest } from '../contract/errors.ts';
import type { InstanceType } from '../contract/values.ts';
import type { Caller } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';
import {
  assertCatalogKnown,
  type CatalogOffer,
  deployableImages,
  type Provider,
  type Providers,
} from '../providers/provider.ts';
import { type ParsedPublicKey, parsePublicKey } from '../ssh-keys/parse-public-key.ts';
import { ownSshKey } from '../ssh-keys/ssh-keys.ts';

/** A create body resolved against the last known catalog. */
export interface DeploymentPlan {
  provider: Provider;
  offer: CatalogOffer;
  region: string;
  operatingSystem: string;
}

/**
 * Resolves a create body (M: Create body). A field that repeats a value of the offer must match it.
 * @throws {ApiError} VALIDATION_ERROR naming each field that does not match; UNAVAILABLE while the catalog is unknown
 */
export function planDeployment(providers: Providers, request: CreateDeployment): DeploymentPlan {
  const { region, operatingSystem } = request;
  const provider = providers.get(request.provider);
  if (provider === undefined)
    throw invalid('provider', `unknown; expected one of ${providers.ids().join(', ')}`);
  assertCatalogKnown(provider);
  const offer = provider.catalog.offers.get(request.offerId);
  if (offer === undefined)
    throw invalid('offerId', `${provider.id} has no such offer; see GET /api/gpu-offers`);
  const issues = findIssues(offer, request);
  if (issues.length > 0) throw invalidRequest(issues);
  return { provider, offer, region, operatingSystem };
}

/**
 * Refuses an offer that is sold out or in maintenance.
 * @throws {ApiError} VALIDATION_ERROR with `details.reason` out_of_stock
 */
export function assertInStock({ offer, region }: DeploymentPlan): void {
  if (offer.maintenance)
    throw outOfStock(`The offer ${offer.offerId} is in maintenance; choose another offer.`);
  if (!offer.inStockRegions.includes(region))
    throw outOfStock(`The offer ${offer.offerId} is sold out in ${region} now; see GET /api/gpu-offers.`);
}

function outOfStock(message: string): ReturnType<typeof invalid> {
  return invalid('offerId', message, { reason: 'out_of_stock' });
}

function findIssues(offer: CatalogOffer, request: CreateDeployment): Issue[] {
  const { gpuType, gpuCount, region, operatingSystem, instanceType, cloudInit } = request;
  const checks: readonly (readonly [path: string, isWrong: boolean, message: string])[] = [
    [
      'gpuType',
      gpuType !== undefined && gpuType !== offer.gpuType,
      `the offer has ${offer.gpuType}; send that, or omit it`,
    ],
    ['gpuCount', gpuCount !== offer.gpuCount, `the offer has ${offer.gpuCount}`],
    [
      'region',
      !offer.regions.includes(region),
      `expected a region of the offer: ${offer.regions.join(', ')}`,
    ],
    [
      'operatingSystem',
      !deployableImages(offer).includes(operatingSystem),
      `expected an image of the offer: ${deployableImages(offer).join(', ')}`,
    ],
    ['instanceType', !fits(instanceType, offer.instanceType), `the offer is ${offer.instanceType}`],
    [
      'cloudInit',
      cloudInit !== undefined && !offer.supportsCloudInit,
      'the offer does not support cloud-init',
    ],
  ];
  return checks.flatMap(([path, isWrong, message]) => (isWrong ? [{ path, message }] : []));
}

/** A bare-metal offer is listed as DEDICATED (M: Offer), so a request may name either type for it. */
function fits(requested: InstanceType | undefined, offered: InstanceType): boolean {
  if (requested === undefined || requested === offered) return true;
  return offered === 'BARE_METAL' && requested === 'DEDICATED';
}

/** The create request for the provider (O: CreateInstanceRequest). */
export function toLaunchRequest(wanted: {
  providerName: string;
  offerId: string;
  region: string;
  /** Null: the provider's default (O: "provider default if omitted"). */
  image: string | null;
  publicKey: string;
  cloudInit: RequestedCloudInit | undefined;
  providerVolumeIds: readonly string[];
}): CreateInstanceRequest {
  return {
    configuration_id: wanted.offerId,
    region: wanted.region,
    ssh_keys: [wanted.publicKey],
    name: wanted.providerName,
    ...(wanted.image !== null && { operating_system_image: wanted.image }),
    ...(wanted.cloudInit !== undefined && { cloud_init: toCloudInit(wanted.cloudInit) }),
    ...(wanted.providerVolumeIds.length > 0 && { volume_ids: [...wanted.providerVolumeIds] }),
  };
}

/** Converts M: `writeFiles` to O: `write_files`; the other names are the same. */
function toCloudInit({ runcmd, packages, writeFiles }: RequestedCloudInit): CloudInit {
  return { runcmd, packages, write_files: writeFiles };
}

/** The one SSH key of a create (M: Create body, "one of the two"). */
export type RequestedKey = { savedId: string } | { inline: ParsedPublicKey };

/** @throws {ApiError} VALIDATION_ERROR unless the body has exactly one key, or if its inline key is invalid */
export function toRequestedKey({ sshKeyId, ssh_public_key: inline }: CreateDeployment): RequestedKey {
  if ((sshKeyId === undefined) === (inline === undefined))
    throw invalidRequest(
      ['sshKeyId', 'ssh_public_key'].map((path) => ({ path, message: 'expected exactly one of the two' })),
    );
  if (sshKeyId !== undefined) return { savedId: sshKeyId };
  return { inline: parsePublicKey('ssh_public_key', inline ?? '') };
}

/**
 * The caller must still insert a temporary key. The key is deleted when its deployment ends.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, or VALIDATION_ERROR for the temporary key of another deployment
 */
export async function toLaunchKey(
  read: Pick<Reader, 'sshKeys' | 'teams'>,
  caller: Caller,
  requested: RequestedKey,
  temporary: { id: string; teamId: string; createdAt: number },
): Promise<SshKeyRecord> {
  if ('savedId' in requested) {
    const saved = await ownSshKey(read, caller, requested.savedId, 'read');
    if (saved.isTemporary) throw invalid('sshKeyId', 'is the temporary key of another deployment');
    return saved;
  }
  const { publicKey, fingerprint, comment } = requested.inline;
  return {
    ...temporary,
    userId: caller.userId,
    name: comment === '' ? 'Inline key' : comment,
    publicKey,
    fingerprint,
    isTemporary: true,
  };
}
