import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { commandsOf, readPage, root, shellBlocksOf } from '../../documents/pages.ts';
import { type Namespace, openNamespace } from '../namespace.ts';

/** Where `guests/*.sh` put what they built. */
export const GUESTS = resolve(process.env['BERTH_LAB_GUESTS'] ?? 'node_modules/.cache/berth-lab');

/** A host with libvirt alone. */
export interface BareHost extends Namespace {
  uri: string;
  /** Holds its libvirt's configuration, and goes with it. */
  folder: string;
  /** Runs what an operator types in a checkout of Berth; its output. @throws if it fails */
  type(command: string): string;
}

/** A host with libvirt, prepared as docs/how-to/libvirt.md says. */
export interface LabHost extends Namespace {
  uri: string;
  /** Its virsh, as its operator has it. */
  virsh(...args: string[]): string;
  /** Domains, files, rules and leases of the host, but for its images and what guards the bridge. */
  contents(): string[];
  /** Puts an image into its pool, by the name of the guest. */
  addImage(guest: string): void;
  /** What a domain has written to its serial console. */
  consoleOf(domain: string): string;
  /** Ends libvirtd and starts it again; machines run on. */
  restartLibvirt(): void;
}

/** What libvirt found out about QEMU is the same for each host: that takes seconds where QEMU is emulated. */
const CACHE = join(GUESTS, 'libvirt-cache');

export const IMAGES = '/var/lib/libvirt/images/berth';

/** What the page has an operator type on a host; the packages are installed already. */
const PREPARE = shellBlocksOf(readPage('docs/how-to/libvirt.md'))
  .flatMap(commandsOf)
  .filter((command) => /^(virsh|install -D|systemctl) /.test(command));

/** A terminal of its operator, in a checkout. No systemd here, and libvirt's socket is where no other host's is. */
const terminal = (folder: string): string => `cd '${root}'
systemctl() { set -- '${folder}'; ${STOP}; ${START}; }`;

/**
 * Everything that libvirt writes goes to memory of the host's own. Without KVM: where it seems usable and QEMU says that it is not,
 * libvirt asks QEMU anew at each definition, for seconds.
 */
const MOUNTS = `set -e
mount --make-rprivate /
mount -t sysfs sysfs /sys
if [ "$3" = without-kvm ] && [ -e /dev/kvm ]; then
  : >"$1/kvm"
  mount --bind "$1/kvm" /dev/kvm
  mount -o remount,bind,ro /dev/kvm
fi
cp -r /etc/libvirt "$1/etc"
mount --bind "$1/etc" /etc/libvirt
rm -rf /etc/libvirt/qemu/networks/autostart/* /etc/libvirt/qemu/networks/*.xml
for folder in /run /var/lib/libvirt /var/log/libvirt; do mount -t tmpfs lab "$folder"; done
mkdir -p "$2"
mount --bind "$2" /var/cache/libvirt
mkdir -p /run/libvirt /run/lock /var/lib/libvirt/images /var/lib/libvirt/qemu /var/lib/libvirt/dnsmasq
printf 'unix_sock_dir = "%s"\\nauth_unix_rw = "none"\\nunix_sock_rw_perms = "0700"\\n' "$1" >/etc/libvirt/libvirtd.conf
printf 'user = "root"\\ngroup = "root"\\nsecurity_driver = "none"\\nnamespaces = []\\ncgroup_controllers = []\\n' >/etc/libvirt/qemu.conf
virtlogd --daemon`;

/** The link is where `qemu:///system`, the URI of clients over OpenSSH, expects the socket. */
const START =
  'libvirtd --daemon --pid-file /run/libvirtd.pid; ln -sf "$1/libvirt-sock" /run/libvirt/libvirt-sock';
const STOP =
  'pid=$(cat /run/libvirtd.pid); kill -9 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done';

/** `with-kvm`: as this machine has it, perhaps one on which guests hang. */
export async function openBareHost(
  index: number,
  kvm: 'with-kvm' | 'without-kvm' = 'without-kvm',
): Promise<BareHost> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-lab-'));
  const namespace = await openNamespace(index);
  const { run } = namespace;
  run('sh', '-c', MOUNTS, 'mounts', folder, kvm === 'with-kvm' ? join(folder, 'cache') : CACHE, kvm);
  const uri = `qemu+unix:///system?socket=${folder}/libvirt-sock`;
  run('sh', '-c', START, 'start', folder);
  return {
    ...namespace,
    uri,
    folder,
    type: (command) => run('sh', '-ec', `${terminal(folder)}\n${command}`),
    async close() {
      await namespace.close();
      rmSync(folder, { recursive: true });
    },
  };
}

export async function openLabHost(index: number): Promise<LabHost> {
  const { folder, type, ...host } = await openBareHost(index);
  const { run, uri } = host;
  const virsh = (...args: string[]): string => run('virsh', '-q', '-c', uri, ...args);
  for (const command of PREPARE) type(command);
  virsh('domcapabilities', '--virttype', 'qemu');
  const images: string[] = [];
  const addImage = (guest: string): void => {
    images.push(`${guest}.qcow2`);
    run('cp', join(GUESTS, `${guest}.qcow2`), IMAGES);
    virsh('pool-refresh', 'berth');
  };
  addImage('tiny');
  return {
    ...host,
    virsh,
    addImage,
    contents() {
      virsh('pool-refresh', 'berth');
      return [
        ...lines(virsh('list', '--all', '--name')),
        ...lines(run('ls', IMAGES)).filter((name) => !images.includes(name)),
        ...lines(run('nft', 'list', 'tables')).filter((table) => /berth_\d/.test(table)),
        ...lines(virsh('net-dhcp-leases', 'berth')),
      ];
    },
    consoleOf: (domain) => run('cat', `${IMAGES}/${domain}.console`),
    restartLibvirt: () => void type('systemctl restart libvirtd'),
  };
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
}
