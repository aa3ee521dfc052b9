import type { GpuScan, PciAddress, PciFunction } from './pci-functions.ts';

/** PCI ids of each `gpu_type` of the offers: `RTX_4090: ['10de:2684']`. */
export type GpuTypes = Readonly<Record<string, readonly string[]>>;

/**
 * Whether a GPU can be used.
 *
 * - `free`: it can be given to a machine.
 * - `claimed`: a domain has it, Berth's or not.
 * - `dirty`: a machine had it, and it has not been reset since.
 * - `quarantined`: its reset failed or damaged it; it stays out of use until an operator releases it.
 * - `unusable`: the host's setup does not allow it to be passed through.
 */
export type GpuState = 'free' | 'claimed' | 'dirty' | 'quarantined' | 'unusable';

/** A GPU sold as one unit: all functions of its slot. It is identified by the first of them. */
export interface Gpu {
  address: PciAddress;
  type: string;
  functions: readonly PciFunction[];
  state: GpuState;
  /** Why it is not free. */
  reason: string | undefined;
  mark: string | undefined;
}

const BRIDGE = '0604';
const QUARANTINED = 'quarantined ';

export const slotOf = (address: PciAddress): string => address.replace(/\.[0-7]$/, '');

/** The host's GPUs of the types that are sold. `claimed`: every PCI function that a domain names. */
export function listGpus(scan: GpuScan, types: GpuTypes, claimed: ReadonlySet<PciAddress>): Gpu[] {
  const typeOf = new Map(
    Object.entries(types).flatMap(([type, ids]) => ids.map((id) => [id, type] as const)),
  );
  const all = [...scan.functions.values()];
  return all.flatMap((first) => {
    const type = typeOf.get(first.id);
    if (type === undefined) return [];
    const functions = all.filter(({ address }) => slotOf(address) === slotOf(first.address));
    const mark = scan.marks.get(first.address);
    const [state, reason] = stateOf(functions, all, mark, claimed);
    return [{ address: first.address, type, functions, state, reason, mark }];
  });
}

function stateOf(
  functions: readonly PciFunction[],
  all: readonly PciFunction[],
  mark: string | undefined,
  claimed: ReadonlySet<PciAddress>,
): [GpuState, string | undefined] {
  if (functions.some(({ address }) => claimed.has(address))) return ['claimed', 'a domain has it'];
  if (mark?.startsWith(QUARANTINED)) return ['quarantined', mark.slice(QUARANTINED.length)];
  const obstacle = functions
    .map((one) => obstacleOf(one, functions, all))
    .find((found) => found !== undefined);
  if (obstacle !== undefined) return ['unusable', obstacle];
  if (mark !== undefined) return ['dirty', 'it was not reset after its last machine'];
  return ['free', undefined];
}

/** Why a function cannot be passed to a guest. Undefined if it can. */
function obstacleOf(
  { address, id, answersAs, driver, group }: PciFunction,
  own: readonly PciFunction[],
  all: readonly PciFunction[],
): string | undefined {
  if (group === undefined) return `${address} is in no IOMMU group: the IOMMU is off`;
  if (driver !== 'vfio-pci') return `${address} is bound to ${driver ?? 'no driver'} and not to vfio-pci`;
  if (answersAs !== id) return `${address} does not answer on the bus`;
  const strangers = all.filter(
    (other) => other.group === group && other.class !== BRIDGE && !own.includes(other),
  );
  if (strangers.length > 0)
    return `${address} shares IOMMU group ${group} with ${strangers.map((other) => other.address).join(', ')}`;
  return undefined;
}
