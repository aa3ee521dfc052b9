import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { PciAddress } from '../gpus/pci-functions.ts';
import { type Claim, type HostView, roomOf } from './room.ts';

/**
 * The verdict on a newly defined claim.
 *
 * - `held`: it fits beside every other claim.
 * - `wait`: it does not fit yet, but claims defined at the same time will back out; retry soon.
 * - `lost`: back out. `gpu`: another claim has this GPU; others may still be free.
 */
export type ClaimVerdict =
  | { verdict: 'held' }
  | { verdict: 'wait' }
  | { verdict: 'lost'; reason: string; gpu?: PciAddress };

/**
 * Several processes may create on one host, and only the host knows all of them. Each defines its domain with an
 * `open` claim and then reads the host's domains. It holds the claim only if everything fits, open claims included.
 * Of two claims that do not fit together, the second define sees the first, so both are never held. This needs no
 * clock or lock, only that libvirt serialises defines.
 *
 * If open claims do not fit together, all processes order them by ref. A claim that does not fit behind those before
 * it backs out; one that fits waits for the others to do so. So one of them always gets the room.
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

/** Why these claims do not fit together. Undefined if they do. */
function obstacleAmong(
  host: HostView,
  claims: readonly Claim[],
  own: Claim,
): { reason: string; gpu?: PciAddress } | undefined {
  const room = roomOf({ ...host, claims });
  if (room.vcpus < 0) return { reason: `the host is short of ${-room.vcpus} vCPUs` };
  if (room.memoryMb < 0) return { reason: `the host is short of ${-room.memoryMb} MiB of memory` };
  if (room.diskGb < 0) return { reason: `the host is short of ${Math.ceil(-room.diskGb)} GB of disk` };
  const others = new Set(claims.filter((claim) => claim !== own).flatMap(({ pciFunctions }) => pciFunctions));
  const gpu = own.pciFunctions.find((address) => others.has(address));
  return gpu === undefined ? undefined : { reason: `another domain has ${gpu} as well`, gpu };
}
