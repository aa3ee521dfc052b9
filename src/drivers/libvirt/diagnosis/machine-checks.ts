import { broken, type Diagnosis } from '../../../ports/diagnosis.ts';
import type { Host } from '../client.ts';
import { VirshError } from '../errors.ts';
import { isUnmarked, UNMARKED } from '../fleet.ts';
import { listDomains } from '../hosts/host-view.ts';

/** Machines that somebody changed behind Berth's back. A host that does not answer was told of before. */
export async function diagnoseMachines(hosts: readonly Host[]): Promise<Diagnosis[]> {
  const homes = new Map<string, string[]>();
  const found: Diagnosis[] = [];
  for (const host of hosts) {
    for (const domain of await domainsOf(host)) {
      if (isUnmarked(domain)) found.push(unmarked(domain.name, host.name));
      if (domain.mark?.ref === domain.name)
        homes.set(domain.name, [...(homes.get(domain.name) ?? []), host.name]);
    }
  }
  for (const [ref, names] of homes) if (names.length > 1) found.push(copied(ref, names));
  return found;
}

async function domainsOf(host: Host) {
  try {
    return await listDomains(host, 'stored');
  } catch (error) {
    if (error instanceof VirshError) return [];
    throw error;
  }
}

const unmarked = (ref: string, host: string): Diagnosis =>
  broken(
    `machine ${ref} on host ${host}`,
    `it is a domain ${UNMARKED}: Berth neither changes nor forgets it`,
    `Put the <metadata> of its definition back (virsh edit ${ref}; a backup of /etc/libvirt/qemu has it), or end it by hand: virsh destroy ${ref}; virsh undefine ${ref}.`,
  );

const copied = (ref: string, hosts: readonly string[]): Diagnosis =>
  broken(
    `machine ${ref}`,
    `it is on ${hosts.join(' and on ')}`,
    `Keep the one whose disk is the newer, and undefine the other by hand: virsh undefine ${ref}. Berth shows the one that runs; a delete ends all of them.`,
  );
