import { broken, type Diagnosis, warning } from '../../../ports/diagnosis.ts';
import type { Host } from '../client.ts';
import { isMachine } from '../domain-xml.ts';
import { hasProblem, onProblem, VirshError } from '../errors.ts';
import { isUnmarked, UNMARKED } from '../fleet.ts';
import { listDomains, observeDomains } from '../hosts/domains.ts';
import type { HostShell } from '../hosts/host-shell.ts';

/** Reports machines that were changed outside Berth. Hosts that do not answer were reported before. */
export async function diagnoseMachines(
  hosts: readonly (Host & { shell: HostShell })[],
): Promise<Diagnosis[]> {
  const homes = new Map<string, string[]>();
  const found: Diagnosis[] = [];
  for (const host of hosts) {
    for (const domain of await domainsOf(host, found)) {
      const { name, mark } = domain;
      if (isUnmarked(domain)) found.push(unmarked(name, host.name));
      if (mark === undefined) continue;
      if (!isMachine(domain)) {
        found.push(copyOf(mark.ref, name, host.name));
        continue;
      }
      if (mark.ref !== name) found.push(renamed(mark.ref, name, host.name));
      homes.set(mark.ref, [...(homes.get(mark.ref) ?? []), host.name]);
    }
  }
  for (const [ref, names] of homes) if (names.length > 1) found.push(onSeveral(ref, names));
  return found;
}

async function domainsOf(host: Host & { shell: HostShell }, found: Diagnosis[]) {
  try {
    // If libvirt waits for a domain, the second names it.
    const listed = await listDomains(host, 'stored').catch(onProblem('late', undefined));
    return listed ?? (await observeDomains(host, host.shell));
  } catch (error) {
    if (!(error instanceof VirshError)) throw error;
    if (hasProblem(error, 'late'))
      found.push(broken(`domains on host ${host.name}`, error.message, LATE_REMEDY));
    return [];
  }
}

const LATE_REMEDY =
  'On the host, look at the state of its QEMU process (ps -o pid,stat,wchan): in state D it waits for its storage or a device. Repair that, or restart the host.';

const unmarked = (ref: string, host: string): Diagnosis =>
  broken(
    `machine ${ref} on host ${host}`,
    `it is a domain ${UNMARKED}: Berth neither changes nor forgets it`,
    `Restore the <metadata> of its definition (virsh edit ${ref}, with a backup of /etc/libvirt/qemu), or remove the domain by hand: virsh destroy ${ref}; virsh undefine ${ref}.`,
  );

const onSeveral = (ref: string, hosts: readonly string[]): Diagnosis =>
  broken(
    `machine ${ref}`,
    `it is on ${hosts.join(' and on ')}`,
    `Keep the one with the newer disk, and undefine the other by hand: virsh undefine ${ref}. Berth shows the running one; a delete destroys all of them.`,
  );

const renamed = (ref: string, name: string, host: string): Diagnosis =>
  warning(
    `machine ${ref} on host ${host}`,
    `it was renamed to ${name}`,
    `Berth identifies it by its UUID. To restore the name, stop it and run virsh domrename ${name} ${ref}.`,
  );

const copyOf = (ref: string, name: string, host: string): Diagnosis =>
  broken(
    `domain ${name} on host ${host}`,
    `it is a copy of the machine ${ref}`,
    `Berth ignores it. Do not start it with the metadata of Berth: it would use the ports and the address of the machine. Remove <berth:machine> from its <metadata> (virsh edit ${name}), or undefine it.`,
  );
