import { type DefinedDomain, readDomainElement, uuidOf } from '../../../src/drivers/libvirt/domain-xml.ts';
import type { MemoryHost } from '../../../src/drivers/libvirt/memory-host.fixture.ts';
import { element, type XmlElement } from '../../../src/drivers/libvirt/xml.ts';
import type { OwnerRef } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Bytes, Content, Disk, Machine } from '../engine.ts';

export type Domain = MemoryHost['domains'] extends Map<string, infer D> ? D : never;

const FOLDER = '/images/';
/** The files of a pool that hold bytes of a tenant. */
const DISK = /\.(qcow2|volume)$/;
const OURS = /^(berth-[a-z0-9-]+?)\.[a-z0-9.]+$/;
/** What the machines are made from. */
export const IMAGE = 'debian.qcow2';

const parsed = new WeakMap<XmlElement, DefinedDomain>();
const contents = new WeakMap<Buffer, Content>();
const EMPTY: Content = { guest: undefined, written: [] };

function domainOf(definition: XmlElement): DefinedDomain {
  const known = parsed.get(definition) ?? readDomainElement(definition);
  parsed.set(definition, known);
  return known;
}

export function machineOf(host: MemoryHost, { uuid, definition, live, pause }: Domain): Machine {
  const { name, mark, disks } = domainOf(definition);
  const own = live === undefined ? disks : domainOf(live).disks;
  const files = own.flatMap(({ path }) => diskOf(host, path?.slice(FOLDER.length) ?? '') ?? []);
  const isOwn = (disk: Disk): boolean => disk.name.endsWith('.qcow2');
  const power = live === undefined ? 'stopped' : pause === undefined ? 'running' : 'paused';
  return {
    host: host.name,
    name,
    identity: uuid,
    ref: mark?.ref,
    isCopy: mark !== undefined && uuid !== uuidOf(mark.ref),
    power,
    address:
      mark?.nat === undefined || live === undefined
        ? undefined
        : { host: host.options.public_ip ?? '', port: mark.nat.hostPort },
    disk: files.find(isOwn),
    volumes: files.filter((disk) => !isOwn(disk)),
  };
}

export function diskOf(host: MemoryHost, name: string): Disk | undefined {
  const file = host.files.get(name);
  if (file === undefined || name === IMAGE || !DISK.test(name)) return undefined;
  return { host: host.name, name, ref: refOfFile(name), content: contentOf(file.content) };
}

export function refOfFile(name: string): OwnerRef | undefined {
  return OURS.exec(name)?.[1];
}

function contentOf(bytes: Buffer): Content {
  if (bytes.length === 0) return EMPTY;
  const known = contents.get(bytes) ?? (JSON.parse(bytes.toString()) as Content);
  contents.set(bytes, known);
  return known;
}

type File = MemoryHost['files'] extends Map<string, infer F> ? F : never;
const allBytes = new WeakMap<File, Bytes>();

export function bytesOf(file: File): Bytes {
  const bytes = allBytes.get(file) ?? {
    get content() {
      return contentOf(file.content);
    },
    set content(content) {
      file.content = Buffer.from(JSON.stringify(content));
    },
  };
  allBytes.set(file, bytes);
  return bytes;
}

/** A definition with another name. */
export function renamed(definition: XmlElement, name: string): XmlElement {
  const children = definition.children.map((child) =>
    typeof child !== 'string' && child.name === 'name' ? element('name', {}, [name]) : child,
  );
  return { ...definition, children };
}

/** A definition whose own disk is another file, with an identity of its own. */
export function cloned(definition: XmlElement, name: string, uuid: string, from: string): XmlElement {
  const text = (child: XmlElement | string): XmlElement | string => {
    if (typeof child === 'string') return child;
    if (child.name === 'uuid') return element('uuid', {}, [uuid]);
    const { file } = child.attributes;
    const attributes =
      file === `${FOLDER}${from}`
        ? { ...child.attributes, file: `${FOLDER}${name}.qcow2` }
        : child.attributes;
    return { ...child, attributes, children: child.children.map(text) };
  };
  return renamed(text(definition) as XmlElement, name);
}

function fileOf(definition: XmlElement, suffix: string): string | undefined {
  const { disks } = domainOf(definition);
  return disks.find(({ path }) => path?.endsWith(suffix))?.path?.slice(FOLDER.length);
}

export const seedOf = (definition: XmlElement): string | undefined => fileOf(definition, '.seed');
export const diskNameOf = (definition: XmlElement): string | undefined => fileOf(definition, '.qcow2');
