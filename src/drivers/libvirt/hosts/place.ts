import type { PciAddress } from '../gpus/pci-address.ts';
import { freeGpus, type HostView, obstacleOf, roomOf, type Wanted } from './room.ts';

/** `spread`: the emptiest host first, so that the loss of one hurts least. `pack`: the fullest, which keeps room for large machines. */
export type PlacementPolicy = 'spread' | 'pack';

/** Where a machine can go, the best host first; or why each host is none. */
export type Placed =
  | { hosts: readonly HostView[] }
  | { refused: readonly { host: string; reason: string }[] };

/** Orders the hosts that have room. The same hosts and the same machine give the same answer. */
export function placeMachine(wanted: Wanted, hosts: readonly HostView[], policy: PlacementPolicy): Placed {
  const judged = hosts.map((host) => ({ host, reason: obstacleOf(host, wanted) }));
  const fitting = judged.flatMap(({ host, reason }) => (reason === undefined ? [host] : []));
  if (fitting.length === 0)
    return { refused: judged.map(({ host, reason = '' }) => ({ host: host.name, reason })) };
  return { hosts: fitting.toSorted((a, b) => compareHosts(a, b, wanted, policy)) };
}

/**
 * A machine without GPUs goes where the fewest are free, so that it takes no room beside GPUs that could be sold.
 * Then how full a host would be counts, and last its name.
 */
function compareHosts(a: HostView, b: HostView, wanted: Wanted, policy: PlacementPolicy): number {
  const sparesGpus = wanted.gpuCount === 0 ? countFree(a) - countFree(b) : 0;
  const fuller = fullnessWith(a, wanted) - fullnessWith(b, wanted);
  return sparesGpus || (policy === 'spread' ? fuller : -fuller) || (a.name < b.name ? -1 : 1);
}

const countFree = ({ gpus }: HostView): number => gpus.filter(({ state }) => state === 'free').length;

/** The part of its scarcest resource that would be taken. */
function fullnessWith(host: HostView, wanted: Wanted): number {
  const room = roomOf(host);
  const parts = (['vcpus', 'memoryMb', 'diskGb'] as const).map((key) =>
    host.sellable[key] > 0 ? 1 - (room[key] - wanted[key]) / host.sellable[key] : 1,
  );
  const ofType = host.gpus.filter(({ type }) => type === wanted.gpuType).length;
  const free = freeGpus(host, wanted.gpuType).length - wanted.gpuCount;
  return Math.max(...parts, wanted.gpuCount > 0 && ofType > 0 ? 1 - free / ofType : 0);
}

/** GPUs of one NUMA node where one has enough: those of the node with the fewest that are enough. */
export function chooseGpus(
  host: HostView,
  { gpuCount, gpuType }: Pick<Wanted, 'gpuCount' | 'gpuType'>,
): PciAddress[] {
  const free = freeGpus(host, gpuType).toSorted((a, b) => (a.address < b.address ? -1 : 1));
  const nodes = [...Map.groupBy(free, ({ functions }) => functions[0]?.numaNode).values()]
    .filter((gpus) => gpus.length >= gpuCount)
    .toSorted((a, b) => a.length - b.length);
  return (nodes[0] ?? free).slice(0, gpuCount).map(({ address }) => address);
}
