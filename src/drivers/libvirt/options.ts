import { z } from 'zod';
import { onForeignSnapshotSchema } from '../kit/foreign-snapshots.ts';

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,62}$/, 'expected letters, digits, "." and "-", such as "kvm-1"');
/** Name of a storage pool, volume or network. It is used in command lines and paths. */
const libvirtName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"');
const port = z.int().min(1).max(65_535);
const ipv4 = z.ipv4('expected an IPv4 address, such as 203.0.113.10');

/** A base image: a qcow2 file in each host's pool. */
export const imageSchema = z.strictObject({
  /** The volume's name in the pool. */
  volume: libvirtName,
  /** The login user of the machine's owner. */
  user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'expected the name of a user, such as "debian"'),
});
export type Image = z.infer<typeof imageSchema>;

/**
 * A libvirt network with its own addresses, behind the host. Each machine gets an address and a block of the host's
 * ports; the first port leads to SSH.
 */
const natSchema = z
  .strictObject({
    mode: z.literal('nat'),
    network: libvirtName.default('berth'),
    /** The network's bridge on the host. */
    bridge: libvirtName.max(15).default('virbr-berth'),
    /**
     * The host's address in the network, used as the machines' gateway. Machines get the addresses after it, in the
     * /16 or smaller.
     */
    gateway: ipv4.default('192.168.150.1'),
    prefix: z.int().min(16).max(29).default(24),
    nameservers: z.array(ipv4).optional(),
    /** The first and last of the host's ports for machines. */
    ports: z.tuple([port, port]).default([30_000, 31_999]),
    /** How many ports each machine gets. */
    ports_per_machine: z.int().min(1).max(64).default(8),
  })
  .refine(({ ports: [first, last] }) => first <= last, 'expected the first port before the last');
export type NatOptions = z.infer<typeof natSchema>;

/** A bridge of the host: each machine gets an address from the network behind it. */
const bridgedSchema = z.strictObject({
  mode: z.literal('bridged'),
  bridge: libvirtName,
  /** The source of a machine's address: the guest agent, the host's neighbour table, or libvirt's DHCP leases. */
  address_from: z.enum(['agent', 'arp', 'lease']).default('arp'),
});

const URI =
  /^qemu(\+unix:\/\/\/system(\?socket=[\w/.-]+)?|:\/\/\/system|\+ssh:\/\/([\w.-]+@)?[\w.-]+(:\d+)?\/system(\?[\w=&/.,%-]*)?)$/;

const hostSchema = z
  .strictObject({
    /** The host's name in logs, losses and `berth doctor`. */
    name,
    uri: z
      .string()
      .regex(URI, 'expected qemu:///system or qemu+ssh://USER@HOST/system')
      .default('qemu:///system'),
    /** The host's location: the `datacenter` of a region. */
    datacenter: z.string().min(2).max(255),
    /** Offers select hosts by this group. */
    group: name.default('default'),
    /** The machines' public address; required with NAT. */
    public_ip: ipv4.optional(),
    /** The storage pool, of type `dir`: images, disks, volumes and console logs. */
    pool: libvirtName.default('berth'),
    network: z.discriminatedUnion('mode', [natSchema, bridgedSchema]).prefault({ mode: 'nat' }),
    /** Resources reserved for the host itself. */
    reserve: z
      .strictObject({
        vcpus: z.int().nonnegative().default(0),
        memory_gb: z.number().nonnegative().default(2),
        disk_gb: z.number().nonnegative().default(10),
      })
      .prefault({}),
    /** Factors by which the host's resources may be oversold. */
    overcommit: z
      .strictObject({
        vcpus: z.number().min(1).max(64).default(1),
        disk: z.number().min(1).max(20).default(1),
      })
      .prefault({}),
    /**
     * A folder on the host for Berth's persistent state: fences, and GPUs that wait for a reset or are out of use.
     */
    state_dir: z
      .string()
      .regex(/^(\/[\w.-]+)+$/, 'expected an absolute path, such as /var/lib/berth')
      .default('/var/lib/berth'),
  })
  .refine(({ network, public_ip: publicIp }) => network.mode !== 'nat' || publicIp !== undefined, {
    path: ['public_ip'],
    error: 'expected the address at which the machines of this host are reached',
  });
export type HostOptions = z.infer<typeof hostSchema>;

/** The keys under `platform:` in berth.yaml. */
export const libvirtConfigSchema = z.strictObject({
  driver: z.literal('libvirt'),
  hosts: z
    .array(hostSchema)
    .min(1)
    .refine((hosts) => new Set(hosts.map((host) => host.name)).size === hosts.length, 'a name is used twice'),
  /** Images by their names in the catalog's `os_options`. */
  images: z.record(z.string(), imageSchema).default({}),
  /** `auto`: KVM if a test guest runs with it, otherwise emulation, which is slow. */
  accelerator: z.enum(['auto', 'kvm', 'tcg']).default('auto'),
  /** PCI vendor and device ids of each `gpu_type` of the catalog, such as `10de:2684`. */
  gpu_types: z
    .record(z.string(), z.array(z.string().regex(/^[0-9a-f]{4}:[0-9a-f]{4}$/, 'expected "10de:2684"')).min(1))
    .default({}),
  /** Which host with room gets a machine: the emptiest or the fullest. */
  placement: z.enum(['spread', 'pack']).default('spread'),
  on_foreign_snapshot: onForeignSnapshotSchema,
  /** Time for a machine to shut down before its power is cut, in seconds. */
  stop_grace_s: z.number().nonnegative().max(3600).default(60),
});
export type LibvirtConfig = z.infer<typeof libvirtConfigSchema>;

/** An offer's `machine:` in the catalog. */
export const libvirtOfferSchema = z.strictObject({
  /** The group of hosts that may have its machines. */
  host_group: name.default('default'),
  /** Images of this offer, which override those of the platform. */
  images: z.record(z.string(), imageSchema).default({}),
  /** Ports of the machine to forward besides SSH, on hosts with NAT. */
  ports: z.array(port).default([]),
  /** The CPU of a guest on KVM: the host's own, or the closest model that other hosts can run too. */
  cpu: z.enum(['host-passthrough', 'host-model']).default('host-passthrough'),
  /** UEFI instead of BIOS. */
  uefi: z.boolean().default(false),
  /** How many volumes a machine can have. */
  max_volumes: z.int().min(0).max(24).default(8),
});
export type LibvirtOffer = z.infer<typeof libvirtOfferSchema>;

/** The image of an offer by name. Undefined if it does not exist. */
export function imageOf(
  { images }: Pick<LibvirtConfig, 'images'>,
  offer: LibvirtOffer,
  name: string,
): Image | undefined {
  return offer.images[name] ?? images[name];
}
