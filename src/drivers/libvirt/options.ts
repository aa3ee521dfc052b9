import { z } from 'zod';

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,62}$/, 'expected letters, digits, "." and "-", such as "kvm-1"');
/** What a storage pool, a volume or a network of libvirt may be called here: it goes into command lines and paths. */
const libvirtName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"');
const port = z.int().min(1).max(65_535);
const ipv4 = z.ipv4('expected an IPv4 address, such as 203.0.113.10');

/** A base image: a qcow2 file in the pool of each host, as `berth image import` puts it there. */
export const imageSchema = z.strictObject({
  /** The volume's name in the pool. */
  volume: libvirtName,
  /** The user that the machine's owner logs in as. */
  user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'expected the name of a user, such as "debian"'),
  /** What `berth image import` must find. Absent: whatever it is given. */
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits')
    .optional(),
});
export type Image = z.infer<typeof imageSchema>;

/**
 * A network of libvirt with addresses of its own, behind the host: each machine gets one of them and a block of the
 * host's ports, of which the first leads to SSH.
 */
const natSchema = z
  .strictObject({
    mode: z.literal('nat'),
    /** The network of libvirt. */
    network: libvirtName.default('berth'),
    /** The network's bridge on the host. */
    bridge: libvirtName.max(15).default('virbr-berth'),
    /** The host's address in it: the machines' gateway. Machines get the addresses after it, in the /16 or smaller. */
    gateway: ipv4.default('192.168.150.1'),
    prefix: z.int().min(16).max(29).default(24),
    nameservers: z.array(ipv4).optional(),
    /** Ports of the host that are given to machines, the first and the last. */
    ports: z.tuple([port, port]).default([30_000, 31_999]),
    /** How many of them each machine gets. */
    ports_per_machine: z.int().min(1).max(64).default(8),
  })
  .refine(({ ports: [first, last] }) => first <= last, 'expected the first port before the last');
export type NatOptions = z.infer<typeof natSchema>;

/** A bridge of the host: each machine gets an address from the network behind it. */
const bridgedSchema = z.strictObject({
  mode: z.literal('bridged'),
  bridge: libvirtName,
  /** Where the address is read: the guest agent, the host's neighbour table, or leases of libvirt's own DHCP. */
  address_from: z.enum(['agent', 'arp', 'lease']).default('arp'),
});

const URI =
  /^qemu(\+unix:\/\/\/system(\?socket=[\w/.-]+)?|:\/\/\/system|\+ssh:\/\/([\w.-]+@)?[\w.-]+(:\d+)?\/system(\?[\w=&/.,%-]*)?)$/;

const hostSchema = z
  .strictObject({
    /** What the host is called in logs, losses and `berth doctor`. */
    name,
    uri: z
      .string()
      .regex(URI, 'expected qemu:///system or qemu+ssh://USER@HOST/system')
      .default('qemu:///system'),
    /** The regions' `datacenter` that the host stands in. */
    datacenter: z.string().min(2).max(255),
    /** Offers name the hosts that may have their machines by it. */
    group: name.default('default'),
    /** Where machines are reached from outside; needed with NAT. */
    public_ip: ipv4.optional(),
    /** Whether that address is of another device, such as a router, that hands its ports on to this host. */
    public_ip_elsewhere: z.boolean().default(false),
    /** The storage pool, of type `dir`: images, disks, volumes and console logs. */
    pool: libvirtName.default('berth'),
    network: z.discriminatedUnion('mode', [natSchema, bridgedSchema]).prefault({ mode: 'nat' }),
    /** Nothing new is placed here; what is here stays. A file `cordon` in `state_dir` does the same at once. */
    cordoned: z.boolean().default(false),
    /** What is left to the host itself. */
    reserve: z
      .strictObject({
        vcpus: z.int().nonnegative().default(0),
        memory_gb: z.number().nonnegative().default(2),
        disk_gb: z.number().nonnegative().default(10),
      })
      .prefault({}),
    /** How much more is promised than there is. */
    overcommit: z
      .strictObject({
        vcpus: z.number().min(1).max(64).default(1),
        memory: z.number().min(1).max(4).default(1),
        disk: z.number().min(1).max(20).default(1),
      })
      .prefault({}),
    /** Where Berth keeps on the host what outlives it: the cordon, and which GPUs wait for a reset or are out of use. */
    state_dir: z
      .string()
      .regex(/^(\/[\w.-]+)+$/, 'expected an absolute path, such as /var/lib/berth')
      .default('/var/lib/berth'),
  })
  .refine(({ network, public_ip: publicIp }) => network.mode !== 'nat' || publicIp !== undefined, {
    path: ['public_ip'],
    error: 'expected the address that the machines of this host are reached at',
  });
export type HostOptions = z.infer<typeof hostSchema>;

/** What an operator writes under `platform:` in berth.yaml. */
export const libvirtConfigSchema = z.strictObject({
  driver: z.literal('libvirt'),
  hosts: z
    .array(hostSchema)
    .min(1)
    .refine((hosts) => new Set(hosts.map((host) => host.name)).size === hosts.length, 'a name stands twice'),
  /** What the catalog's `os_options` are here. */
  images: z.record(z.string(), imageSchema).default({}),
  /** `auto`: KVM where a machine that was tried with it ran; emulation elsewhere, which is slow. */
  accelerator: z.enum(['auto', 'kvm', 'tcg']).default('auto'),
  /** What the catalog's `gpu_type` are here: vendor and device of PCI, such as `10de:2684`. */
  gpu_types: z
    .record(z.string(), z.array(z.string().regex(/^[0-9a-f]{4}:[0-9a-f]{4}$/, 'expected "10de:2684"')).min(1))
    .default({}),
  /** Which host of those with room gets a machine: the emptiest, or the fullest. */
  placement: z.enum(['spread', 'pack']).default('spread'),
  /** What a delete does with the snapshots that an operator made of the machine: it waits, with an alarm, or removes them too. */
  on_foreign_snapshot: z.enum(['wait', 'delete']).default('wait'),
  /** How long a machine may take to shut down by itself before its power is cut. */
  stop_grace_s: z.number().nonnegative().max(3600).default(60),
});
export type LibvirtConfig = z.infer<typeof libvirtConfigSchema>;

/** What an offer says under `machine:`. */
export const libvirtOfferSchema = z.strictObject({
  /** Which hosts may have its machines. */
  host_group: name.default('default'),
  /** Images of this offer, before those of the platform. */
  images: z.record(z.string(), imageSchema).default({}),
  /** Ports of the machine that lead outside beside SSH, where the host has NAT. */
  ports: z.array(port).default([]),
  /** The processor that a guest sees on KVM: the host's own, or the nearest model that can also run elsewhere. */
  cpu: z.enum(['host-passthrough', 'host-model']).default('host-passthrough'),
  /** UEFI instead of BIOS. */
  uefi: z.boolean().default(false),
  /** How many volumes a machine can have. */
  max_volumes: z.int().min(0).max(24).default(8),
});
export type LibvirtOffer = z.infer<typeof libvirtOfferSchema>;

/** The image that an offer is sold with by that name; undefined: there is none. */
export function imageOf(
  { images }: Pick<LibvirtConfig, 'images'>,
  offer: LibvirtOffer,
  name: string,
): Image | undefined {
  return offer.images[name] ?? images[name];
}
