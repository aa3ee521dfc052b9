import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { onProblem, VirshError, type VirshProblem } from '../errors.ts';
import { DOMCAPABILITIES, type Filesystem, readCapabilities, readHostFacts } from '../hosts/host-facts.ts';
import { LEAST_FREE_GB } from '../hosts/host-view.ts';
import { hasNetworkFilter, NETWORK_FILTER } from '../network.ts';
import { type Image, libvirtOfferSchema } from '../options.ts';
import { poolFolder } from '../pool.ts';
import type { CheckedHost } from './shell-checks.ts';

/**
 * The oldest versions that Berth is tested with. Libvirt 7.1 is the first that knows the CPU mode of emulated guests.
 */
const OLDEST = { libvirt: 9, QEMU: 7 };

/** Checks that libvirt answers and accepts the login, and its versions. */
export async function diagnoseConnection({ host }: CheckedHost): Promise<Diagnosis[]> {
  const subject = `libvirt on host ${host.name}`;
  try {
    const text = await host.virsh(['version']);
    return [ok(subject, `${host.options.uri} answers`), ...versionsOf(subject, text)];
  } catch (error) {
    if (!(error instanceof VirshError)) throw error;
    return [broken(subject, error.message, connectionRemedies[error.problem] ?? OTHER_REMEDY)];
  }
}

const OTHER_REMEDY = 'Try it by hand: virsh -c URI version.';
const connectionRemedies: Partial<Record<VirshProblem, string>> = {
  unreachable:
    'Check that libvirtd runs there (systemctl status libvirtd), and that `virsh -c URI list` works for the user that runs Berth. For qemu+ssh, that user needs a key that works without a prompt, and the host in known_hosts.',
  refused:
    'On the host: add the user to the group libvirt (usermod -aG libvirt USER), then log in anew. For qemu+ssh, check the key and known_hosts.',
};

function versionsOf(subject: string, text: string): Diagnosis[] {
  const using = /Using library: libvirt (\d+)\.(\S+)/.exec(text);
  const running = /Running hypervisor: (\w+) (\d+)\.(\S+)/.exec(text);
  const found = [
    ['libvirt', using?.[1], using?.[2]] as const,
    ['QEMU', running?.[1] === 'QEMU' ? running[2] : undefined, running?.[3]] as const,
  ];
  return found.map(([name, major, rest]) => {
    if (major === undefined)
      return broken(
        subject,
        `it does not report a ${name} version`,
        `Install ${name} on the host; Debian: qemu-system-x86.`,
      );
    const version = `${name} ${major}.${rest}`;
    return Number(major) >= OLDEST[name]
      ? ok(subject, version)
      : warning(
          subject,
          `${version} is older than the versions that Berth was tested with`,
          `Use ${name} ${OLDEST[name]} or later.`,
        );
  });
}

export async function diagnosePool(checked: CheckedHost): Promise<Diagnosis[]> {
  const { host } = checked;
  const { pool, reserve } = host.options;
  const subject = `pool ${pool} on host ${host.name}`;
  try {
    const text = await host.virsh(['pool-info', '--bytes', pool]);
    const value = (name: string): string =>
      new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
    if (value('State') !== 'running')
      return [
        broken(
          subject,
          `it is ${value('State')}`,
          `virsh pool-start ${pool} && virsh pool-autostart ${pool}`,
        ),
      ];
    const filesystem = await filesystemOf(checked);
    if (filesystem?.isReadOnly)
      return [
        broken(
          subject,
          `its file system ${filesystem.mount} is read-only: no machine is made there, and none can write`,
          `See the host's kernel log (dmesg), repair the file system, then: mount -o remount,rw ${filesystem.mount}`,
        ),
      ];
    // Libvirt's own figure is as old as the last refresh of the pool.
    const freeGb = filesystem?.freeGb ?? Number(value('Available')) / 1024 ** 3;
    const room =
      freeGb < Math.max(reserve.disk_gb, LEAST_FREE_GB)
        ? broken(
            subject,
            `${freeGb.toFixed(1)} GB are free, less than reserve.disk_gb: the host gets no machine`,
            'Free some disk space, or lower reserve.disk_gb.',
          )
        : ok(subject, `it runs, ${freeGb.toFixed(1)} GB are free`);
    if (value('Autostart') === 'yes') return [room];
    return [room, warning(subject, 'it does not start with the host', `virsh pool-autostart ${pool}`)];
  } catch (error) {
    if (!(error instanceof VirshError && error.problem === 'no_pool')) throw error;
    const remedy = `virsh pool-define-as ${pool} dir --target /var/lib/libvirt/images/${pool} && virsh pool-build ${pool} && virsh pool-start ${pool} && virsh pool-autostart ${pool}`;
    return [broken(subject, 'it does not exist', remedy)];
  }
}

async function filesystemOf({ host, shell }: CheckedHost): Promise<Filesystem | undefined> {
  const place = { stateDir: host.options.state_dir };
  const reading = readHostFacts(shell, place, await poolFolder(host));
  const facts = await reading.catch(onProblem('unreachable', undefined));
  return facts?.filesystem;
}

/** Checks the images of the offers that the host may get. */
export async function diagnoseImages({ host, config, catalog }: CheckedHost): Promise<Diagnosis[]> {
  const images = new Map<string, Image | undefined>();
  for (const { machine, osOptions } of catalog.offers.values()) {
    const offer = libvirtOfferSchema.parse(machine);
    if (offer.host_group !== host.options.group) continue;
    for (const name of osOptions) images.set(name, offer.images[name] ?? config.images[name]);
  }
  return Promise.all([...images].map(([name, image]) => diagnoseImage(host, name, image)));
}

async function diagnoseImage(
  host: CheckedHost['host'],
  name: string,
  image: Image | undefined,
): Promise<Diagnosis> {
  const subject = `image ${name} on host ${host.name}`;
  if (image === undefined)
    return broken(
      subject,
      'the platform has no image of that name',
      `Add it under platform.images: ${name}: { volume: ${name}.qcow2, user: debian }.`,
    );
  try {
    await host.virsh(['vol-info', '--pool', host.options.pool, image.volume]);
    return ok(subject, `it is the volume ${image.volume}`);
  } catch (error) {
    if (!(error instanceof VirshError && (error.problem === 'no_volume' || error.problem === 'no_pool')))
      throw error;
    const remedy = `Run berth image import ${name} FILE. If you copied the file there by hand, run virsh pool-refresh.`;
    return broken(subject, `the pool has no volume ${image.volume}`, remedy);
  }
}

/** Checks libvirt for what its machines need besides images: KVM, and firmware if an offer uses UEFI. */
export async function diagnoseCapabilities({ host, config, catalog }: CheckedHost): Promise<Diagnosis[]> {
  const offers = [...catalog.offers.values()].map(({ machine }) => libvirtOfferSchema.parse(machine));
  const needsUefi = offers.some((offer) => offer.uefi && offer.host_group === host.options.group);
  // `hostname` never fails, so the call succeeds even if libvirt refuses `domcapabilities`.
  const has = readCapabilities(await host.virsh([`${DOMCAPABILITIES}; hostname`]));
  const uefi = `UEFI on host ${host.name}`;
  const kvm = `KVM on host ${host.name}`;
  const found: Diagnosis[] = [];
  if (needsUefi)
    found.push(has.uefi ? ok(uefi, 'libvirt has UEFI firmware') : broken(uefi, NO_UEFI, UEFI_REMEDY));
  if (config.accelerator === 'tcg') return found;
  if (has.kvm) found.push(ok(kvm, 'libvirt has KVM'));
  else if (config.accelerator === 'kvm') found.push(broken(kvm, NO_KVM, KVM_REMEDY));
  else found.push(warning(kvm, 'libvirt has no KVM: guests are emulated, and slow', KVM_REMEDY));
  return found;
}

const NO_UEFI = 'libvirt has no UEFI firmware: offers with uefi: true get no machine on this host';
const UEFI_REMEDY = 'Install the firmware; Debian: ovmf.';
const NO_KVM = 'libvirt has no KVM, but platform.accelerator is kvm: the host gets no machine';
const KVM_REMEDY =
  'Enable VT-x or AMD-V in the firmware, and load kvm_intel or kvm_amd. If emulation is intended, set platform.accelerator to tcg.';

export async function diagnoseNetwork({ host }: CheckedHost): Promise<Diagnosis[]> {
  const { network } = host.options;
  const filters = await host.virsh(['nwfilter-list']);
  const subject = `network filter on host ${host.name}`;
  const filter = hasNetworkFilter(filters)
    ? ok(subject, `${NETWORK_FILTER} is there`)
    : broken(
        subject,
        `there is no ${NETWORK_FILTER}, which stops machines from using addresses of other machines`,
        'Install the filters of libvirt; Debian: libvirt-daemon-config-nwfilter.',
      );
  return network.mode === 'nat' ? [filter, ...(await diagnoseNat(host, network.network))] : [filter];
}

async function diagnoseNat(host: CheckedHost['host'], network: string): Promise<Diagnosis[]> {
  const subject = `network ${network} on host ${host.name}`;
  try {
    const text = await host.virsh(['net-info', network]);
    if (!/^Active:\s+yes/m.test(text))
      return [
        broken(
          subject,
          'it is not active: nothing reaches the machines of this host',
          `virsh net-start ${network} && virsh net-autostart ${network} && systemctl restart libvirtd, which reattaches the interfaces of running guests.`,
        ),
      ];
    const active = ok(subject, 'it is active');
    return /^Autostart:\s+yes/m.test(text)
      ? [active]
      : [active, warning(subject, 'it does not start with the host', `virsh net-autostart ${network}`)];
  } catch (error) {
    if (!(error instanceof VirshError && error.problem === 'no_network')) throw error;
    return [
      broken(
        subject,
        'it does not exist',
        'Define it with virsh net-define, as docs/how-to/libvirt.md shows.',
      ),
    ];
  }
}
