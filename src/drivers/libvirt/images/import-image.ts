import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { Fatal } from '../../../ports/errors.ts';
import type { ImageImport } from '../../kit/driver-definition.ts';
import { type Host, openHost } from '../client.ts';
import type { HostDomain } from '../domain-xml.ts';
import { onProblem, VirshError } from '../errors.ts';
import { listDomains } from '../hosts/domains.ts';
import { type Login, openLogin } from '../hosts/host-shell.ts';
import { type HostOptions, type Image, type LibvirtConfig, libvirtOfferSchema } from '../options.ts';
import { overlayArguments } from '../pool.ts';
import { descend, parseXml, textOf } from '../xml.ts';

const GIB = 1024 ** 3;
/** Upload time limit: this, plus about one second per MiB. */
const UPLOAD_BASE_MS = 60_000;

/** Imports the file into each host's pool, one after another. @throws {Fatal} before anything is uploaded */
export function importImage(
  config: LibvirtConfig,
  { catalog }: { catalog: Catalog },
  { name, file, host: only, replace }: ImageImport,
  open: (options: LibvirtConfig['hosts'][number], login: Login) => Host = openHost,
): AsyncIterable<Diagnosis> {
  const hosts = config.hosts.filter((host) => only === undefined || host.name === only);
  if (hosts.length === 0) throw new Fatal(`There is no host ${only}: name one of platform.hosts.`);
  return withImageFile(file, async function* (source) {
    const targets = targetsOf(config, catalog, name, source.sha256);
    const places = hosts.flatMap((host) => volumesFor(host, targets).map((volume) => ({ host, volume })));
    if (places.length === 0)
      throw new Fatal(`No offer has machines of the image ${name} on ${only ?? 'any host'}.`);
    yield describeSource(`file ${file}`, source, targets[0]?.image.sha256 !== undefined);
    for (const { host, volume } of places) {
      const subject = `image ${name} on host ${host.name}`;
      const login = openLogin(host);
      try {
        yield* importTo(open(host, login), volume, source, { subject, replace });
      } catch (error) {
        if (!(error instanceof VirshError)) throw error;
        yield broken(
          subject,
          error.message,
          'Fix this and import the image again. A partial upload is never used.',
        );
      } finally {
        await login.close();
      }
    }
  });
}

function describeSource(subject: string, { sha256, diskBytes }: ImageSource, isKnown: boolean): Diagnosis {
  const disk = `qcow2 with a disk of ${(diskBytes / GIB).toFixed(1)} GB`;
  return isKnown
    ? ok(subject, `${disk}; its SHA-256 is the configured one`)
    : warning(
        subject,
        `${disk}; no SHA-256 is configured for the image`,
        `Add sha256: ${sha256} to it in the configuration.`,
      );
}

/**
 * Uploads the content as `VOLUME.SHA256`, then creates VOLUME as an empty overlay of it, since libvirt cannot rename
 * a volume. So VOLUME never exists with a partial image, and its backing file's name is the digest.
 */
async function* importTo(
  host: Host,
  volume: string,
  source: ImageSource,
  { subject, replace }: { subject: string; replace: boolean },
): AsyncIterable<Diagnosis> {
  await host.virsh(['pool-refresh', host.options.pool]);
  const content = `${volume}.${source.sha256}`;
  const found = await readVolume(host, volume);
  const before = basename(found?.backingFile ?? '');
  const isWhole = (await readVolume(host, content)) && (await lengthOf(host, content)) === source.bytes;
  if (before === content && isWhole) return yield ok(subject, `the volume ${volume} is this image already`);
  const other = before === content ? undefined : found;
  if (other !== undefined && !replace)
    return yield broken(
      subject,
      `the volume ${volume} exists, but holds another image or was not imported by Berth`,
      'Give the new image another volume name. Use --replace to replace an image that no disk is based on.',
    );
  const assertUnused = async (): Promise<void> => {
    const user = other && (await findUser(host, other.path));
    if (user !== undefined)
      throw new VirshError('busy', `${user} is based on the volume ${volume}, which was not changed`);
  };
  await assertUnused();
  yield ok(subject, `uploading ${Math.ceil(source.bytes / 1024 ** 2)} MB`);
  await upload(host, content, source);
  await assertUnused().catch(async (error: unknown) => {
    await deleteImageFile(host, content);
    throw error;
  });
  if (before !== content) {
    await deleteImageFile(host, volume);
    await host.virsh(overlayArguments(host, volume, content, source.diskBytes / GIB));
  }
  if (other !== undefined && isContentOf(volume, before)) await deleteImageFile(host, before);
  yield ok(subject, `it is the volume ${volume}`);
}

const isContentOf = (volume: string, name: string): boolean =>
  name.startsWith(`${volume}.`) && /^[0-9a-f]{64}$/.test(name.slice(volume.length + 1));

/** Deletes a file of the image; the import is run by an operator and touches no other files. @throws {VirshError} */
async function deleteImageFile({ virsh, options }: Host, name: string): Promise<void> {
  await virsh(['vol-delete', '--pool', options.pool, '--', name]).catch(onProblem('no_volume', ''));
}

/** Uploads the file. Replaces the rest of an interrupted import, which no overlay uses. @throws {VirshError} */
async function upload(host: Host, name: string, { fd, bytes }: ImageSource): Promise<void> {
  const { virsh, options } = host;
  await deleteImageFile(host, name);
  // The file grows while it is written, so its length shows whether the upload is complete.
  await virsh(['vol-create-as', options.pool, name, '1B', '--format', 'raw']);
  try {
    const timeoutMs = UPLOAD_BASE_MS + bytes / 1024;
    await virsh(['vol-upload', '--pool', options.pool, name, '/dev/stdin'], { file: fd, timeoutMs });
    const length = await lengthOf(host, name);
    if (length !== bytes)
      throw new VirshError(
        'other',
        `${host.name} has ${length} bytes of ${bytes}: did the file change during the upload?`,
      );
  } catch (error) {
    await deleteImageFile(host, name).catch(() => {});
    throw error;
  }
  // Only after a refresh does libvirt know that the volume is qcow2.
  await virsh(['pool-refresh', options.pool]);
}

/** Reads a volume. Undefined if it does not exist. @throws {VirshError} */
async function readVolume({ virsh, options }: Host, name: string) {
  const reading = virsh(['vol-dumpxml', '--pool', options.pool, '--', name]);
  const xml = await reading.catch(onProblem('no_volume', undefined));
  if (xml === undefined) return undefined;
  const pathOf = (of: string): string => textOf(descend(parseXml(xml), of, 'path'));
  return { name, path: pathOf('target'), backingFile: pathOf('backingStore') };
}

/** Length of the file itself, in bytes. @throws {VirshError} */
async function lengthOf({ virsh, options }: Host, name: string): Promise<number> {
  const info = await virsh(['vol-info', '--bytes', '--physical', '--pool', options.pool, '--', name]);
  return Number(/^Physical:\s+(\d+)/m.exec(info)?.[1]);
}

/** A volume of the pool with this backing file, or a domain with this disk. @throws {VirshError} */
async function findUser(host: Host, path: string): Promise<string | undefined> {
  const list = await host.virsh(['vol-list', '--pool', host.options.pool]);
  const names = list.split('\n').flatMap((line) => /^\s*(\S.*?)\s{2,}\//.exec(line)?.[1] ?? []);
  const volumes = await Promise.all(names.map((name) => readVolume(host, name)));
  const overlay = volumes.find((volume) => volume?.backingFile === path);
  const hasIt = (domain: HostDomain): boolean => domain.disks.some((disk) => disk.path === path);
  return overlay?.name ?? (await listDomains(host)).find(hasIt)?.name;
}

interface Target {
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
function targetsOf(
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

function volumesFor({ group }: HostOptions, targets: readonly Target[]): string[] {
  const own = targets.filter((target) => target.group === undefined || target.group === group);
  return [...new Set(own.map(({ image }) => image.volume))];
}

interface ImageSource {
  /** Open for reading. */
  fd: number;
  bytes: number;
  /** Size of the disk in it. */
  diskBytes: number;
  sha256: string;
}

/**
 * Runs `use` with the file, which stays open, so that the upload has the verified content.
 *
 * @throws {Fatal} if it is not an image
 */
async function* withImageFile<T>(
  path: string,
  use: (source: ImageSource) => AsyncIterable<T>,
): AsyncIterable<T> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: Error) => {
    throw new Fatal(`The file ${path} cannot be read: ${error.message}.`);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Fatal(`${path} is not a file.`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    const header = readQcow2Header(buffer.subarray(0, bytesRead));
    if (header.refused !== undefined) throw new Fatal(`${path} cannot be a base image: ${header.refused}.`);
    const hash = createHash('sha256');
    for await (const part of file.createReadStream({ autoClose: false, start: 0 })) hash.update(part);
    const { diskBytes } = header;
    yield* use({ fd: file.fd, bytes: stat.size, diskBytes, sha256: hash.digest('hex') });
  } finally {
    await file.close();
  }
}

const MAGIC = 0x5146_49fb;
/** Header of version 3, with its feature fields. */
const HEADER_BYTES = 104;
/** Incompatible features that are allowed: the compression type and extended L2 entries. */
const HARMLESS_FEATURES = 0b1_1000n;

/**
 * Reads the disk size from a qcow2 header, or says why it cannot be a base image. QEMU would open a backing file or
 * external data file named in the image: another tenant's disk, or a file of the host.
 */
function readQcow2Header(header: Buffer): { diskBytes: number; refused?: never } | { refused: string } {
  if (header.length < HEADER_BYTES || header.readUInt32BE(0) !== MAGIC)
    return { refused: 'it is not a qcow2 file; `qemu-img convert -O qcow2` converts other formats' };
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return { refused: `its qcow2 version ${version} is not supported` };
  if (header.readBigUInt64BE(8) !== 0n)
    return { refused: 'it has a backing file; `qemu-img convert -O qcow2` merges both into one file' };
  if (header.readUInt32BE(32) !== 0) return { refused: 'it is encrypted' };
  const features = version === 2 ? 0n : header.readBigUInt64BE(72);
  if ((features & 0b100n) !== 0n) return { refused: 'its data is in an external file' };
  if ((features & ~HARMLESS_FEATURES) !== 0n)
    return {
      refused:
        'it was not closed properly, is damaged, or needs a newer Berth; `qemu-img check -r all` may repair it',
    };
  const diskBytes = Number(header.readBigUInt64BE(24));
  return diskBytes === 0 ? { refused: 'its disk is empty' } : { diskBytes };
}
