import { ApiError, type Issue, invalidRequest } from '../../contract/errors.ts';
import type { CreateInstanceRequest } from '../../contract/instance.ts';
import { parseSshPublicKey, toAuthorizedKeysLine } from '../../contract/ssh-key.ts';
import { canCloudInit, type Offer, type Offering } from '../catalog/catalog.ts';
import { renderUserData } from '../cloud-init/render.ts';
import type { DriverManifest } from '../model/platform-driver.ts';
import type { InstanceSpec } from '../model/records.ts';

/** A create checked against the catalog. */
export interface InstancePlan {
  offer: Offer;
  region: string;
  spec: InstanceSpec;
}

/** Everything that is wrong with the given fields of a create and can be checked without the store. */
export function findPlanIssues(offering: Offering, request: Partial<CreateInstanceRequest>): Issue[] {
  return check(offering, request).issues;
}

/**
 * Checks everything about a create that does not need the store.
 *
 * @throws {ApiError} `invalid_request` with every issue found, or `cloud_init_unsupported`
 */
export function planInstance(offering: Offering, request: CreateInstanceRequest): InstancePlan {
  const { offer, sshKeys, issues } = check(offering, request);
  if (issues.length > 0 || offer === undefined) throw invalidRequest(issues);
  if (request.cloud_init !== undefined && !canCloudInit(offering.manifests.of(offer), offer))
    throw new ApiError(
      'cloud_init_unsupported',
      `The offer ${offer.id} has supports_cloud_init: false; leave cloud_init out.`,
      {
        details: { issues: [{ path: 'cloud_init', message: 'expected no cloud_init for this offer' }] },
      },
    );
  return { offer, region: request.region, spec: toSpec(offer, request, sshKeys) };
}

function check(
  { catalog, manifests }: Offering,
  request: Partial<CreateInstanceRequest>,
): { offer: Offer | undefined; sshKeys: string[]; issues: Issue[] } {
  const { configuration_id: id, ssh_keys: keys = [] } = request;
  const { sshKeys, issues } = readSshKeys(keys);
  const offer = id === undefined ? undefined : catalog.offers.get(id);
  if (offer !== undefined) issues.unshift(...placementIssues(offer, request));
  else if (id !== undefined)
    issues.unshift({ path: 'configuration_id', message: 'expected the id of an offer in /configurations' });
  const manifest = offer && manifests.of(offer);
  if (offer !== undefined && manifest !== undefined && canCloudInit(manifest, offer))
    issues.push(...cloudInitIssues(manifest, request));
  return { offer, sshKeys, issues };
}

/** Refuses user data that is too large for the platform, before anything is made. */
function cloudInitIssues(
  { cloudInitBytes }: DriverManifest,
  { cloud_init: cloudInit }: Partial<CreateInstanceRequest>,
): Issue[] {
  if (cloudInit === undefined) return [];
  const bytes = Buffer.byteLength(renderUserData(cloudInit));
  if (bytes <= cloudInitBytes) return [];
  const message = `expected at most ${cloudInitBytes} bytes as user data, got ${bytes}`;
  return [{ path: 'cloud_init', message }];
}

/** Every key is injected (O: Instances, rule 5). A duplicate key counts once. */
function readSshKeys(texts: readonly string[]): { sshKeys: string[]; issues: Issue[] } {
  const lines = new Map<string, string>();
  const issues: Issue[] = [];
  for (const [index, text] of texts.entries()) {
    const parsed = parseSshPublicKey(text);
    if ('problem' in parsed) issues.push({ path: `ssh_keys[${index}]`, message: parsed.problem });
    else if (!lines.has(parsed.key.base64)) lines.set(parsed.key.base64, toAuthorizedKeysLine(parsed.key));
  }
  return { sshKeys: [...lines.values()], issues };
}

function placementIssues(offer: Offer, request: Partial<CreateInstanceRequest>): Issue[] {
  const issues: Issue[] = [];
  const { region, operating_system_image: image, root_disk_size_gb: diskGb } = request;
  const regions = offer.placements.map((placement) => placement.region);
  if (region !== undefined && !regions.includes(region))
    issues.push({ path: 'region', message: `expected one of the offer's regions: ${regions.join(', ')}` });
  if (image !== undefined && !offer.osOptions.includes(image))
    issues.push({
      path: 'operating_system_image',
      message: `expected one of the offer's os_options: ${offer.osOptions.join(', ')}`,
    });
  if (diskGb !== undefined) issues.push(...diskIssues(offer, diskGb));
  return issues;
}

function diskIssues({ rootDisk, storageGb }: Offer, diskGb: number): Issue[] {
  const { minGb, maxGb } = rootDisk ?? { minGb: storageGb, maxGb: storageGb };
  if (diskGb >= minGb && diskGb <= maxGb) return [];
  const expected =
    minGb === maxGb
      ? `expected ${minGb}: this offer's root disk is fixed`
      : `expected ${minGb} to ${maxGb} GB`;
  return [{ path: 'root_disk_size_gb', message: expected }];
}

function toSpec(offer: Offer, request: CreateInstanceRequest, sshKeys: string[]): InstanceSpec {
  const { instanceType, vcpus, memoryGb, gpuCount, gpuType } = offer;
  const { onStop, resumable, restartable, onlineWithinMs } = offer;
  return {
    instanceType,
    vcpus,
    memoryGb,
    gpuCount,
    gpuType,
    onStop,
    resumable,
    restartable,
    onlineWithinMs,
    storageGb: request.root_disk_size_gb ?? offer.storageGb,
    image: request.operating_system_image ?? offer.osOptions[0] ?? 'default',
    sshKeys,
    cloudInit: request.cloud_init,
  };
}
