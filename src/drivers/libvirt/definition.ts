import type { Change } from './change.ts';
import { hostdevOf } from './domain-xml.ts';
import type { FoundMachine, Member } from './fleet.ts';
import type { PciAddress } from './gpus/pci-functions.ts';
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
 * An unfinished operation of a machine, stored in its mark.
 *
 * - `create`: its disk or its seed is missing.
 * - `boot`: both exist, and it was never seen running.
 * - `restart ID`: its power must be cut and restored. A machine that runs with this memo has been restarted.
 * - `restarted ID`: that restart is complete.
 */
export type Memo = 'create' | 'boot' | `restart ${string}` | `restarted ${string}`;

export type MarkChanges = Partial<Omit<MachineMark, 'memo'>> & { memo?: Memo | undefined };

/** Defines the domain, or redefines it; a running domain gets the changes at its next start. @throws {VirshError} */
export async function define(change: Change, host: Member, xml: string): Promise<void> {
  await change.virsh(host, ['define', '/dev/stdin'], { input: xml });
}

/**
 * Changes the mark of a machine; with `pciFunctions`, also its PCI devices. Without them libvirt changes only the
 * mark, so a volume that another server attaches at the same time is kept, and a deleted domain is not defined again.
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
 * Replaces the mark with a release mark, and removes the machine's GPUs and the disks at these paths, in one command.
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
 * Clears the memo `boot` of a running machine, in case the server that started it did not. A read may do this too:
 * the command applies only to the run that was read.
 *
 * @throws {VirshError}
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

/** The definition with the mark replaced. Other metadata is kept. */
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
