import type { PciAddress } from '../gpus/pci-functions.ts';
import { freeGpus, type HostView, obstacleOf, roomOf, type Wanted } from './room.ts';

/**
 * `spread`: the emptiest host first, to limit the damage of a lost host. `pack`: the fullest, to keep room for large
 * machines.
 */
export type PlacementPolicy = 'spread' | 'pack';

/** The hosts for a machine, best first; or why each host is refused. */
export type Placed =
  | { hosts: readonly HostView[] }
  | { refused: readonly { host: string; reason: string }[] };

/** Orders the hosts that have room. Deterministic. */
export function placeMachine(wanted: Wanted, hosts: readonly HostView[], policy: PlacementPolicy): Placed {
  const judged = hosts.map((host) => ({ host, reason: obstacleOf(host, wanted) }));
  const fitting = judged.flatMap(({ host, reason }) => (reason === undefined ? [host] : []));
  if (fitting.length === 0)
    return { refused: judged.map(({ host, reason = '' }) => ({ host: host.name, reason })) };
  return { hosts: fitting.toSorted((a, b) => compareHosts(a, b, wanted, policy)) };
}

/**
 * A machine without GPUs prefers hosts with few free GPUs, so that it takes no room from GPU machines. Then the
 * host's fullness decides, then its name.
 */
function compareHosts(a: HostView, b: HostView, wanted: Wanted, policy: PlacementPolicy): number {
  const sparesGpus = wanted.gpuCount === 0 ? countFree(a) - countFree(b) : 0;
  const fuller = fullnessWith(a, wanted) - fullnessWith(b, wanted);
  return sparesGpus || (policy === 'spread' ? fuller : -fuller) || (a.name < b.name ? -1 : 1);
}

const countFree = ({ gpus }: HostView): number => gpus.filter(({ state }) => state === 'free').length;

/** The used share of the host's scarcest resource, with the machine. */
function fullnessWith(host: HostView, wanted: Wanted): number {
  const room = roomOf(host);
  const parts = (['vcpus', 'memoryMb', 'diskGb'] as const).map((key) =>
    host.sellable[key] > 0 ? 1 - (room[key] - wanted[key]) / host.sellable[key] : 1,
  );
  const ofType = host.gpus.filter(({ type }) => type === wanted.gpuType).length;
  const free = freeGpus(host, wanted.gpuType).length - wanted.gpuCount;
  return Math.max(...parts, wanted.gpuCount > 0 && ofType > 0 ? 1 - free / ofType : 0);
}

/** Chooses GPUs of one NUMA node if one has enough: the node with the smallest sufficient number. */
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
