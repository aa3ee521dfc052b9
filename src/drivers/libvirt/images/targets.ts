import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import { Fatal } from '../../../ports/errors.ts';
import { type HostOptions, type Image, type LibvirtConfig, libvirtOfferSchema } from '../options.ts';

export interface Target {
  image: Image;
  /** The group of hosts that may have the offer's machines. Undefined for every host. */
  group?: string;
}

/**
 * Finds the volumes for a file by its digest: those configured with this digest, or else the only one without a
 * digest.
 *
 * @throws {Fatal} if there is none, or several without a digest
 */
export function targetsOf(
  { images }: Pick<LibvirtConfig, 'images'>,
  { offers }: Catalog,
  name: string,
  sha256: string,
): Target[] {
  const named: Target[] = images[name] === undefined ? [] : [{ image: images[name] }];
  for (const { machine } of offers.values()) {
    const offer = libvirtOfferSchema.parse(machine);
    const image = offer.images[name];
    if (image !== undefined) named.push({ image, group: offer.host_group });
  }
  if (named.length === 0)
    throw new Fatal(
      `There is no image ${name}: add it under platform.images: ${name}: { volume: ${name}.qcow2, user: debian }.`,
    );
  const asking = named.filter(({ image }) => image.sha256 === sha256);
  if (asking.length > 0) return asking;
  const digests = new Map(
    named.flatMap(({ image: { volume, sha256: digest } }) =>
      digest === undefined ? [] : [[volume, digest]],
    ),
  );
  const open = named.filter(({ image }) => !digests.has(image.volume));
  const [first, second] = new Set(open.map(({ image }) => image.volume));
  if (first === undefined)
    throw new Fatal(
      `The file is not the image ${name}: its SHA-256 is ${sha256}, but the configured one is ${[...digests.values()].join(' or ')}. Nothing was uploaded.`,
    );
  if (second !== undefined)
    throw new Fatal(
      `The image ${name} may be ${first} or ${second}: add sha256: ${sha256} to the right one in the configuration.`,
    );
  return open;
}

export function volumesFor({ group }: HostOptions, targets: readonly Target[]): string[] {
  const own = targets.filter((target) => target.group === undefined || target.group === group);
  return [...new Set(own.map(({ image }) => image.volume))];
}
