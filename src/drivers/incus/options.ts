import { z } from 'zod';
import { onForeignSnapshotSchema } from '../kit/foreign-snapshots.ts';

const nameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'expected an Incus name');
const addressSchema = z
  .string()
  .regex(
    /^(unix:\/.+|https:\/\/[^/?#]+\/?)$/,
    'expected unix:/var/lib/incus/unix.socket or an address such as https://10.0.0.11:8443',
  );

/** An image of Incus and the login user of its machines. */
const imageSchema = z.strictObject({
  /** Alias of the image in the project. The default is the catalog's name. */
  alias: z.string().min(1).max(255).optional(),
  login_user: z
    .string()
    .regex(/^[a-z_][a-z0-9_-]{0,31}$/)
    .optional(),
});
const imagesSchema = z.record(z.string(), imageSchema);

const portRangeSchema = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/, 'expected a range such as 22000-22999')
  .transform((text) => text.split('-').map(Number) as [number, number])
  .refine(
    ([first, last]) => first >= 1 && first <= last && last <= 65_535,
    'expected a port range within 1 to 65535, lowest first',
  );

/** A member's listen address, and its public address if it is behind a router. */
const listenSchema = z.union([
  z.union([z.ipv4(), z.ipv6()]),
  z.strictObject({
    listen: z.union([z.ipv4(), z.ipv6()]),
    public: z.union([z.ipv4(), z.ipv6()]),
  }),
]);

/** The keys under `platform:` in berth.yaml. */
export const incusConfigSchema = z.strictObject({
  driver: z.literal('incus'),
  /** The daemon's socket, or members of the cluster. If one does not answer, the next is tried. */
  address: z
    .union([addressSchema, z.array(addressSchema).min(1)])
    .default('unix:/var/lib/incus/unix.socket')
    .transform((address) => [address].flat()),
  /** PEM files, relative to berth.yaml. HTTPS needs all three. */
  client_certificate: z.string().min(1).optional(),
  client_key: z.string().min(1).optional(),
  /** The only accepted certificate: a cluster's `cluster.crt` or a single daemon's `server.crt`. */
  server_certificate: z.string().min(1).optional(),
  project: nameSchema.default('default'),
  /** Applied to every machine in this order; Berth's own settings override them. */
  profiles: z.array(nameSchema).default([]),
  storage_pool: nameSchema.default('default'),
  /** The pool of volumes. The default is `storage_pool`. */
  volume_pool: nameSchema.optional(),
  /** `filesystem`: mounted in containers. `block`: a disk, for virtual machines. */
  volume_content: z.enum(['filesystem', 'block']).default('filesystem'),
  network: nameSchema.default('incusbr0'),
  /** Isolates machines from each other on a bridge, and prevents spoofed addresses. */
  isolation: z.boolean().default(true),
  /** Network ACLs for each machine's interface on an OVN network. */
  acls: z.array(nameSchema).default([]),
  /** Makes machines reachable at ports of their member. Without it, they are reached at their own address. */
  port_forwards: z
    .strictObject({
      ports: portRangeSchema,
      /** Addresses by member name; `none` without a cluster. */
      addresses: z.record(z.string(), listenSchema),
    })
    .optional(),
  /** Images by their names in the catalog's `os_options`. */
  images: imagesSchema.default({}),
  /** The cluster group of each datacenter of the catalog. A datacenter that is not listed may use every member. */
  datacenters: z.record(z.string(), nameSchema).default({}),
  /** Factors by which a member's resources may be oversold. */
  overcommit: z
    .strictObject({
      cpu: z.number().positive().max(100).default(1),
      disk: z.number().positive().max(100).default(1),
    })
    .prefault({}),
  on_foreign_snapshot: onForeignSnapshotSchema,
});
export type IncusConfig = z.infer<typeof incusConfigSchema>;

const pciSchema = z
  .string()
  .regex(/^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/, 'expected a PCI address such as 0000:3b:00.0');
const hexSchema = z.string().regex(/^[0-9a-f]{4}$/, 'expected four hexadecimal digits');

/** An offer's `machine:` in the catalog. */
export const incusOfferSchema = z.strictObject({
  kind: z.enum(['container', 'virtual-machine']).default('container'),
  /** A cluster group. By default any member may have the machines. */
  host_group: nameSchema.optional(),
  profiles: z.array(nameSchema).optional(),
  network: nameSchema.optional(),
  storage_pool: nameSchema.optional(),
  images: imagesSchema.default({}),
  /** Restricts the GPUs that `gpu_count` is taken from. The default is all that Incus shows. */
  gpus: z
    .strictObject({
      vendor_id: hexSchema.optional(),
      product_id: hexSchema.optional(),
      pci: z.array(pciSchema).min(1).optional(),
    })
    .default({}),
  /** Ports of the machine to forward besides SSH. */
  forward_ports: z.array(z.int().min(1).max(65_535)).max(32).default([]),
});
export type IncusOffer = z.infer<typeof incusOfferSchema>;
