import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import { VirshError, type VirshProblem } from '../errors.ts';
import { findKvmProblem } from '../hosts/accelerator.ts';
import type { HostView } from '../hosts/room.ts';
import { type Image, libvirtOfferSchema } from '../options.ts';
import { descend, parseXml, textOf } from '../xml.ts';
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

/** What is wrong with the host, and whether it has what its machines need. */
export async function diagnoseView(checked: CheckedHost, view: HostView): Promise<Diagnosis[]> {
  const subject = `host ${view.name}`;
  const problems = view.problems.map(({ finding, remedy, isFatal }) =>
    (isFatal ? broken : warning)(subject, finding, remedy),
  );
  return [
    ...(view.fault === undefined ? [ok(subject, 'its pool, its network and its filters are ready')] : []),
    ...problems,
    ...(await diagnoseImages(checked, view)),
    ...(await diagnoseCapabilities(checked, view)),
  ];
}

/** Checks the images of the offers that the host may get. */
function diagnoseImages({ host, config, catalog }: CheckedHost, { volumes }: HostView): Promise<Diagnosis[]> {
  const images = new Map<string, Image | undefined>();
  for (const { machine, osOptions } of catalog.offers.values()) {
    const offer = libvirtOfferSchema.parse(machine);
    if (offer.host_group !== host.options.group) continue;
    for (const name of osOptions) images.set(name, offer.images[name] ?? config.images[name]);
  }
  return Promise.all([...images].map(([name, image]) => diagnoseImage(host, name, image, volumes)));
}

/** QEMU would open a backing file that an image names: another tenant's disk, or a file of the host. */
async function diagnoseImage(
  host: CheckedHost['host'],
  name: string,
  image: Image | undefined,
  volumes: HostView['volumes'],
): Promise<Diagnosis> {
  const subject = `image ${name} on host ${host.name}`;
  if (image === undefined)
    return broken(
      subject,
      'the platform has no image of that name',
      `Add it under platform.images: ${name}: { volume: ${name}.qcow2, user: debian }.`,
    );
  const { volume } = image;
  if (!volumes.has(volume))
    return broken(
      subject,
      `the pool has no volume ${volume}`,
      'Put it there as docs/how-to/libvirt.md shows.',
    );
  const xml = parseXml(await host.virsh(['vol-dumpxml', '--pool', host.options.pool, '--', volume]));
  const backing = textOf(descend(xml, 'backingStore', 'path'));
  const format = descend(xml, 'target', 'format')?.attributes['type'];
  if (format === 'qcow2' && backing === '') return ok(subject, `it is the volume ${volume}`);
  return broken(
    subject,
    backing === '' ? `its format is ${format}, not qcow2` : `it has the backing file ${backing}`,
    'Replace it by one qcow2 file that has all of it: qemu-img convert -O qcow2.',
  );
}

/** Checks libvirt for what its machines need besides images: KVM, and firmware if an offer uses UEFI. */
async function diagnoseCapabilities(
  { host, shell, config, catalog }: CheckedHost,
  { capabilities: has }: HostView,
): Promise<Diagnosis[]> {
  const offers = [...catalog.offers.values()].map(({ machine }) => libvirtOfferSchema.parse(machine));
  const needsUefi = offers.some((offer) => offer.uefi && offer.host_group === host.options.group);
  const uefi = `UEFI on host ${host.name}`;
  const kvm = `KVM on host ${host.name}`;
  const found: Diagnosis[] = [];
  if (needsUefi)
    found.push(has.uefi ? ok(uefi, 'libvirt has UEFI firmware') : broken(uefi, NO_UEFI, UEFI_REMEDY));
  if (config.accelerator === 'tcg') return found;
  if (config.accelerator === 'kvm')
    return [...found, has.kvm ? ok(kvm, 'libvirt has KVM') : broken(kvm, NO_KVM, KVM_REMEDY)];
  const problem = await findKvmProblem(shell, { stateDir: host.options.state_dir }, has);
  if (problem === undefined) return [...found, ok(kvm, 'a test guest ran on it')];
  return [...found, warning(kvm, `${problem}; guests are emulated, and slow`, KVM_REMEDY)];
}

const NO_UEFI = 'libvirt has no UEFI firmware: offers with uefi: true get no machine on this host';
const UEFI_REMEDY = 'Install the firmware; Debian: ovmf.';
const NO_KVM = 'libvirt has no KVM, but platform.accelerator is kvm: the host gets no machine';
const KVM_REMEDY =
  'Enable VT-x or AMD-V in the firmware, load kvm_intel or kvm_amd, and give the user that Berth logs in as access to /dev/kvm (group kvm). If emulation is intended, set platform.accelerator to tcg; if KVM cannot be tested from here, to kvm.';
