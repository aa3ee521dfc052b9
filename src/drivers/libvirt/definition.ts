import type { Change } from './change.ts';
import { hostdevOf } from './domain-xml.ts';
import type { FoundMachine, Member } from './fleet.ts';
import type { PciAddress } from './gpus/pci-address.ts';
import {
  MARK_PREFIX,
  type MachineMark,
  NAMESPACE,
  type ReleaseMark,
  toMarkElement,
  toMetadata,
  toReleaseElement,
} from './machine-mark.ts';
import { descend, element, serializeXml, type XmlElement } from './xml.ts';

/**
 * What is under way with a machine, in its mark until it is over.
 *
 * - `create`: it has neither disk nor seed yet, or not all of them.
 * - `boot`: both are there, and it was never seen to run.
 * - `restart ID`: its power is to be cut and given again. What runs with this word has had both.
 * - `restarted ID`: that is over.
 */
export type Memo = 'create' | 'boot' | `restart ${string}` | `restarted ${string}`;

export type MarkChanges = Partial<Omit<MachineMark, 'memo'>> & { memo?: Memo | undefined };

/** Defines the domain, anew or with changes; a running one has them after its next start. @throws {VirshError} */
export async function define(change: Change, host: Member, xml: string): Promise<void> {
  await change.virsh(host, ['define', '/dev/stdin'], { input: xml });
}

/**
 * Writes changes into the mark of a machine; with `pciFunctions`, also which of the host's it has. The mark alone is
 * changed by libvirt itself: a volume that another server attaches meanwhile stays, and what is gone is not made again.
 *
 * @throws {VirshError}
 */
export async function remark(
  change: Change,
  { host, domain, definition }: FoundMachine,
  changes: MarkChanges,
  pciFunctions?: readonly PciAddress[],
): Promise<void> {
  const mark = toMarkElement(markWith(domain.mark, changes));
  if (pciFunctions !== undefined)
    return define(change, host, serializeXml(withMark(withPciFunctions(definition, pciFunctions), mark)));
  await change.virsh(host, markArguments(domain.uuid, mark));
}

/**
 * Takes the mark of a machine away in one command, with the GPUs that it holds and the disks of these paths.
 *
 * @throws {VirshError}
 */
export async function unmark(
  change: Change,
  { host, domain, definition }: FoundMachine,
  release: ReleaseMark,
  paths: readonly string[],
): Promise<void> {
  const mark = toReleaseElement(release);
  const hasGpus = domain.mark.gpus.length > 0;
  if (!hasGpus && paths.length === 0)
    return void (await change.virsh(host, markArguments(domain.uuid, mark)));
  const without = withDevices(definition, (devices) =>
    devices.filter((one) => {
      if (typeof one === 'string' || (one.name === 'hostdev' && hasGpus)) return false;
      const { file = '' } = descend(one, 'source')?.attributes ?? {};
      return one.name !== 'disk' || !paths.includes(file);
    }),
  );
  await define(change, host, serializeXml(withMark(without, mark)));
}

/**
 * What runs has booted, also where whoever started it did not get to write that. A read may write this too: it is written in
 * the same run of the machine or not at all. @throws {VirshError}
 */
export async function mend(machine: FoundMachine, change?: Change): Promise<FoundMachine> {
  const { host, run, domain } = machine;
  if (run === undefined || domain.mark.memo !== 'boot') return machine;
  const args = markArguments(domain.uuid, toMarkElement(markWith(domain.mark, { memo: undefined })));
  await (change === undefined ? host.virsh(args, { run }) : change.virsh(host, args, { run }));
  return machine;
}

function markWith(before: MachineMark, changes: MarkChanges): MachineMark {
  const { memo, ...rest } = { ...before, ...changes };
  return memo === undefined ? rest : { ...rest, memo };
}

const markArguments = (uuid: string, mark: XmlElement): string[] => [
  ...['metadata', '--config', '--key', MARK_PREFIX, '--set', serializeXml(toMetadata(mark))],
  ...['--', uuid, NAMESPACE],
];

/** The definition with the mark in place of the old one; what others keep in the metadata stays. */
function withMark(definition: XmlElement, mark: XmlElement): XmlElement {
  const children = definition.children.map((child) => {
    if (typeof child === 'string' || child.name !== 'metadata') return child;
    const others = child.children.filter((one) => typeof one === 'string' || one.name !== 'berth:machine');
    return element('metadata', child.attributes, [...others, mark]);
  });
  return { ...definition, children };
}

const withPciFunctions = (definition: XmlElement, addresses: readonly PciAddress[]): XmlElement =>
  withDevices(definition, (devices) => [
    ...devices.filter((one) => typeof one === 'string' || one.name !== 'hostdev'),
    ...addresses.map(hostdevOf),
  ]);

type Children = XmlElement['children'];

function withDevices(definition: XmlElement, change: (devices: Children) => Children): XmlElement {
  const children = definition.children.map((child) =>
    typeof child === 'string' || child.name !== 'devices'
      ? child
      : element('devices', child.attributes, change(child.children)),
  );
  return { ...definition, children };
}
