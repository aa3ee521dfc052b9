import type { Note, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { PciAddress } from './gpus/pci-functions.ts';
import { childrenOf, descend, element, isXmlText, textOf, type XmlElement } from './xml.ts';

/**
 * The resources that a domain claims on its host.
 *
 * - `open`: defined, but the room was not checked yet.
 * - `held`: there was room; its size and its GPUs are reserved.
 * - `released`: it is stopped and keeps only its disk. A start opens the claim again.
 */
export type ClaimState = 'open' | 'held' | 'released';

/** Berth's metadata in a domain. A domain without it belongs to another owner and is never changed. */
export interface MachineMark {
  ref: OwnerRef;
  /** Milliseconds since the Unix epoch. */
  createdAt: number;
  note: Note;
  claim: ClaimState;
  /** Whether a stopped machine keeps its resources. */
  holds?: boolean;
  diskGb: number;
  gpuCount: number;
  gpuType: string | undefined;
  /** The GPUs that it claims, each by its first function. */
  gpus: readonly PciAddress[];
  /** The login user of its keys. */
  user: string;
  /** Its ports and address behind NAT. Absent if it has its own address. */
  nat?: NatMark;
  hostKeyFingerprint?: string;
  /** A note that the driver keeps between calls, such as the last restart. */
  memo?: string;
}

export interface NatMark {
  /** The first of its ports on the host. */
  hostPort: number;
  /** Its address in the host's network. */
  address: string;
  /** The host's bridge, which the hook protects. */
  bridge: string;
  /** Its forwarded ports, in the order of the host's ports; the first is SSH. */
  guestPorts: readonly number[];
}

/** Replaces the mark of a released machine. The domain belongs to another owner, although its UUID is still Berth's. */
export interface ReleaseMark {
  ref: OwnerRef;
  /** Milliseconds since the Unix epoch. */
  at: number;
  /** Reserves its address and ports behind NAT, since its guest still uses the address. */
  hostPort?: number | undefined;
}

export const MARK_PREFIX = 'berth';
export const NAMESPACE = 'urn:berth:machine:1';
const CREATED_BY = 'berth';
const BASE64 = 'base64';

export function toMarkElement(mark: MachineMark): XmlElement {
  return element('berth:machine', { 'xmlns:berth': NAMESPACE, ref: mark.ref, 'created-by': CREATED_BY }, [
    element('berth:created', { at: mark.createdAt }),
    element(
      'berth:claim',
      { state: mark.claim, holds: mark.holds === true ? 'yes' : undefined, 'disk-gb': mark.diskGb },
      [element('berth:gpus', { count: mark.gpuCount, type: mark.gpuType }, mark.gpus.map(toGpu))],
    ),
    element('berth:reached', {
      user: mark.user,
      'host-port': mark.nat?.hostPort,
      address: mark.nat?.address,
      bridge: mark.nat?.bridge,
      'guest-ports': mark.nat?.guestPorts.join(' '),
      'host-key': mark.hostKeyFingerprint,
    }),
    noteElement(mark.note),
    element('berth:memo', {}, mark.memo === undefined ? [] : [mark.memo]),
  ]);
}

export const toReleaseElement = ({ ref, at, hostPort }: ReleaseMark): XmlElement =>
  element('berth:released', {
    'xmlns:berth': NAMESPACE,
    ref,
    'created-by': CREATED_BY,
    at,
    'host-port': hostPort,
  });

/** A mark without namespace prefixes; libvirt adds them. */
export function toMetadata(mark: XmlElement): XmlElement {
  const plain = ({ name, attributes, children }: XmlElement): XmlElement => {
    const { [`xmlns:${MARK_PREFIX}`]: _namespace, ...own } = attributes;
    const within = children.map((child) => (typeof child === 'string' ? child : plain(child)));
    return { name: name.replace(`${MARK_PREFIX}:`, ''), attributes: own, children: within };
  };
  return plain(mark);
}

/** The note as text, or as base64 of its UTF-16 if XML cannot contain it. */
function noteElement(note: Note): XmlElement {
  if (note === '') return element('berth:note');
  return isXmlText(note)
    ? element('berth:note', {}, [note])
    : element('berth:note', { encoding: BASE64 }, [Buffer.from(note, 'utf16le').toString('base64')]);
}

function noteOf(of: XmlElement | undefined): Note {
  const text = textOf(of);
  return of?.attributes['encoding'] === BASE64 ? Buffer.from(text, 'base64').toString('utf16le') : text;
}

const toGpu = (address: PciAddress): XmlElement => element('berth:gpu', { address });

/** The mark in a domain's metadata. Undefined if it has none. */
export function markOf(metadata: XmlElement | undefined): MachineMark | undefined {
  const mark = descend(metadata, 'berth:machine');
  const ref = refOf(mark);
  if (mark === undefined || ref === undefined) return undefined;
  const { state, holds, 'disk-gb': diskGb } = descend(mark, 'berth:claim')?.attributes ?? {};
  const gpus = descend(mark, 'berth:claim', 'berth:gpus');
  const reached = descend(mark, 'berth:reached')?.attributes ?? {};
  const nat = natOf(reached);
  const hostKey = reached['host-key'];
  const memo = textOf(descend(mark, 'berth:memo'));
  return {
    ref,
    createdAt: Number(descend(mark, 'berth:created')?.attributes['at']),
    note: noteOf(descend(mark, 'berth:note')),
    claim: state === 'open' || state === 'released' ? state : 'held',
    ...(holds === 'yes' && { holds: true }),
    diskGb: Number(diskGb ?? 0),
    gpuCount: Number(gpus?.attributes['count'] ?? 0),
    gpuType: gpus?.attributes['type'],
    gpus: gpus === undefined ? [] : childrenOf(gpus, 'berth:gpu').flatMap(addressOf),
    user: reached['user'] ?? 'root',
    nat,
    hostKeyFingerprint: hostKey,
    ...(memo !== '' && { memo }),
  };
}

/** The release mark in a domain's metadata. Undefined if the domain was not released. */
export function releaseOf(metadata: XmlElement | undefined): ReleaseMark | undefined {
  const mark = descend(metadata, 'berth:released');
  const ref = refOf(mark);
  const { at, 'host-port': hostPort } = mark?.attributes ?? {};
  if (ref === undefined) return undefined;
  return { ref, at: Number(at), ...(hostPort !== undefined && { hostPort: Number(hostPort) }) };
}

/** The ref in a mark. Undefined if Berth did not write the mark. */
function refOf(mark: XmlElement | undefined): OwnerRef | undefined {
  const { 'xmlns:berth': namespace, 'created-by': createdBy, ref } = mark?.attributes ?? {};
  return namespace === NAMESPACE && createdBy === CREATED_BY ? ref : undefined;
}

function natOf(reached: XmlElement['attributes']): NatMark | undefined {
  const { 'host-port': hostPort, address, bridge, 'guest-ports': guestPorts } = reached;
  if (hostPort === undefined || address === undefined || bridge === undefined) return undefined;
  return {
    hostPort: Number(hostPort),
    address,
    bridge,
    guestPorts: (guestPorts ?? '22').split(' ').map(Number),
  };
}

const addressOf = ({ attributes }: XmlElement): PciAddress[] =>
  attributes['address'] === undefined ? [] : [attributes['address']];
