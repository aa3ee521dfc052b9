import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { PciAddress } from '../gpus/pci-address.ts';
import { type Claim, type HostView, roomOf } from './room.ts';

/**
 * What becomes of a claim that was just defined.
 *
 * - `held`: there is room for it beside every other claim.
 * - `wait`: there is none, but others that were defined at the same time will back out; look again soon.
 * - `lost`: back out. `gpu`: others have a GPU that it chose, and there may be more.
 */
export type ClaimVerdict =
  | { verdict: 'held' }
  | { verdict: 'wait' }
  | { verdict: 'lost'; reason: string; gpu?: PciAddress };

/**
 * Creates on one host may come from several processes, and nothing but the host itself knows them all. So each of them
 * defines its domain first, with an `open` claim, and reads the host's domains after that. It holds its claim only if
 * all that it then sees fits, open claims too. Of two claims that do not fit together the one that was defined second
 * sees the first, so never both are held: that needs no clock and no lock, but only that libvirt does one define after
 * the other.
 *
 * Where open claims do not fit together, all see the same order, that of their refs: who does not fit behind those
 * before it backs out, and who does waits until the others have. So one of them always gets the room.
 */
export function settleClaim(host: HostView, ref: OwnerRef): ClaimVerdict {
  const { claims } = host;
  const own = claims.find((claim) => claim.ref === ref);
  if (own === undefined) return { verdict: 'lost', reason: 'its domain is gone' };
  if (obstacleAmong(host, claims, own) === undefined) return { verdict: 'held' };
  const admitted = claims.filter(({ state }) => state !== 'open');
  const open = claims.filter(({ state }) => state === 'open');
  for (const claim of open.toSorted((a, b) => ((a.ref ?? '') < (b.ref ?? '') ? -1 : 1))) {
    const obstacle = obstacleAmong(host, [...admitted, claim], claim);
    if (obstacle === undefined) admitted.push(claim);
    else if (claim === own) return { verdict: 'lost', ...obstacle };
  }
  return { verdict: 'wait' };
}

/** Why one of these claims does not fit beside the others. */
function obstacleAmong(
  host: HostView,
  claims: readonly Claim[],
  own: Claim,
): { reason: string; gpu?: PciAddress } | undefined {
  const room = roomOf({ ...host, claims });
  if (room.vcpus < 0) return { reason: `${-room.vcpus} vCPUs are missing` };
  if (room.memoryMb < 0) return { reason: `${-room.memoryMb} MiB of memory are missing` };
  if (room.diskGb < 0) return { reason: `${Math.ceil(-room.diskGb)} GB of disk are missing` };
  const others = new Set(claims.filter((claim) => claim !== own).flatMap(({ pciFunctions }) => pciFunctions));
  const gpu = own.pciFunctions.find((address) => others.has(address));
  return gpu === undefined ? undefined : { reason: `another domain has ${gpu} too`, gpu };
}
