import type { Catalog } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, warning } from '../../../ports/diagnosis.ts';
import { sideBySide } from '../../kit/asking.ts';
import { diagnoseFreeUnits } from '../../kit/diagnosis.ts';
import type { DriverSetting } from '../../kit/driver-definition.ts';
import { type Host, openHost } from '../client.ts';
import { isMachine } from '../domain-xml.ts';
import { hasProblem, onProblem, VirshError } from '../errors.ts';
import { isUnmarked, UNMARKED } from '../fleet.ts';
import { listDomains, observeDomains } from '../hosts/domains.ts';
import { type HostShell, openHostShell, openLogin } from '../hosts/host-shell.ts';
import { readHostView } from '../hosts/host-view.ts';
import { countUnits, viewsIn } from '../hosts/inventory.ts';
import { type HostView, roomOf } from '../hosts/room.ts';
import { type LibvirtConfig, libvirtOfferSchema } from '../options.ts';
import { readHosts } from '../placement.ts';
import { diagnoseConnection, diagnoseView } from './libvirt-checks.ts';
import { type CheckedHost, diagnoseGpus, diagnoseShell } from './shell-checks.ts';

/** Checks every prerequisite of every host, and the catalog's requirements. Changes nothing. */
export async function* diagnose(
  config: LibvirtConfig,
  { catalog, clock, asking }: Pick<DriverSetting, 'catalog' | 'clock' | 'asking'>,
): AsyncIterable<Diagnosis> {
  const hosts = config.hosts.map((options) => ({ options, login: openLogin(options, asking) }));
  const opened = hosts.map(({ options, login }) => ({
    host: openHost(options, login),
    shell: openHostShell(options, login),
  }));
  try {
    yield* sideBySide(opened.map((each) => diagnoseHost({ ...each, config, catalog, clock })));
    const members = opened.map(({ host, shell }) => ({ ...host, shell }));
    yield* await diagnoseMachines(members);
    yield* await diagnoseRoom(members, config, { catalog, clock });
  } finally {
    await Promise.all(hosts.map(({ login }) => login.close()));
  }
  yield* diagnoseOffers(config, catalog);
}

/** Reports how much room there is for each offer. Hosts that do not answer have their own findings. */
async function diagnoseRoom(
  hosts: readonly (Host & { shell: HostShell })[],
  config: LibvirtConfig,
  { catalog, clock }: Pick<DriverSetting, 'catalog' | 'clock'>,
): Promise<Diagnosis[]> {
  const answers = await readHosts(hosts, { clock, config });
  return [
    ...viewsIn(answers).flatMap((view) => diagnosePromises(view, config)),
    ...diagnoseFreeUnits(
      countUnits(catalog, answers, [], config),
      'Fix what the line says of each host; the reserve and the overcommit of a host are in platform.hosts.',
    ),
  ];
}

/** Compares what the machines and volumes of a host may take with what its file system has for them. */
function diagnosePromises(view: HostView, { hosts }: LibvirtConfig): Diagnosis[] {
  const overGb = Math.ceil(-roomOf(view).diskGb);
  if (overGb <= 0) return [];
  const pool = hosts.find(({ name }) => name === view.name)?.pool;
  return [
    warning(
      `pool ${pool} on host ${view.name}`,
      `its machines and volumes may take ${overGb} GB more than its file system has for them: a full one pauses them all`,
      'Free disk space, enlarge the file system, or move machines and volumes away. To sell more than there is, raise overcommit.disk.',
    ),
  ];
}

/** Skips checks that depend on a failed one: without libvirt, the pool cannot be checked. */
export async function* diagnoseHost(checked: CheckedHost): AsyncIterable<Diagnosis> {
  const connection = await diagnoseConnection(checked);
  yield* connection;
  const { facts, diagnoses } = await diagnoseShell(checked);
  yield* diagnoses;
  if (facts === undefined || connection.some(({ verdict }) => verdict === 'broken')) return;
  const { host, shell, config } = checked;
  try {
    const view = await readHostView(host, shell, config.gpu_types);
    yield* await diagnoseView(checked, view);
    yield* diagnoseGpus(checked, facts, view);
  } catch (error) {
    if (!(error instanceof VirshError)) throw error;
    const remedy = 'Fix what libvirt reports, and run the check again.';
    yield broken(`host ${host.name}`, error.message, remedy);
  }
}

function* diagnoseOffers(
  { hosts, gpu_types: types }: LibvirtConfig,
  { offers, regions }: Catalog,
): Iterable<Diagnosis> {
  for (const { id, machine, gpuType, placements } of offers.values()) {
    const subject = `offer ${id}`;
    const { host_group: group } = libvirtOfferSchema.parse(machine);
    if (gpuType !== undefined && types[gpuType] === undefined)
      yield broken(
        subject,
        `gpu_types has no entry for ${gpuType}`,
        `Add its vendor and device, as \`lspci -nn\` prints them: ${gpuType}: ['10de:2330'].`,
      );
    for (const { region } of placements) {
      const datacenter = regions.get(region)?.datacenter ?? region;
      if (hosts.some((host) => host.group === group && host.datacenter === datacenter)) continue;
      yield broken(
        subject,
        `it is sold in ${region}, but no host of the group ${group} is in ${datacenter}`,
        'Add such a host to platform.hosts, or remove the region from the offer.',
      );
    }
  }
}

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
