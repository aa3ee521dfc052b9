import { z } from 'zod';

const nameSchema = z.string().min(1).max(255);
const userSchema = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/);

/** An image of Glance and the login user of its machines. */
const imageSchema = z.strictObject({
  /** Name or id of the image. The default is the catalog's name. */
  image: nameSchema.optional(),
  login_user: userSchema.optional(),
});
const imagesSchema = z.record(z.string(), imageSchema);

/** The keys under `platform:` in berth.yaml. */
export const openstackConfigSchema = z.strictObject({
  driver: z.literal('openstack'),
  /** The entry of clouds.yaml that says where the cloud is and who Berth is there. */
  cloud: nameSchema,
  /**
   * The file with the entry, relative to berth.yaml. By default `$OS_CLIENT_CONFIG_FILE`,
   * `~/.config/openstack/clouds.yaml` or `/etc/openstack/clouds.yaml`.
   */
  clouds_file: z.string().min(1).optional(),
  /** Id of the project. A credential of another project is refused. */
  project: nameSchema.optional(),
  /** Overrides `region_name` of the entry. Each region is a platform of its own. */
  region: nameSchema.optional(),
  /** Name or id of the network that machines are on. */
  network: nameSchema,
  /** Name or id of the network of floating IPs. Without it, machines are reached at their address on `network`. */
  floating_network: nameSchema.optional(),
  /** Names or ids. By default Berth makes a group `berth` that admits SSH and ping. */
  security_groups: z.array(nameSchema).min(1).optional(),
  /** Images by their names in the catalog's `os_options`. */
  images: imagesSchema.default({}),
  /** The availability zones of each datacenter of the catalog. A datacenter that is not listed may use every zone. */
  datacenters: z
    .record(
      z.string(),
      z.strictObject({
        zones: z.array(nameSchema).min(1),
        /** The zone of Cinder in which its volumes are made. */
        volume_zone: nameSchema.optional(),
      }),
    )
    .default({}),
  /** The volume types of Cinder by their names in the catalog. The default is the catalog's name. */
  volume_types: z.record(z.string(), nameSchema).default({}),
});
export type OpenStackConfig = z.infer<typeof openstackConfigSchema>;

/** An offer's `machine:` in the catalog. */
export const openstackOfferSchema = z.strictObject({
  /** Name or id. GPUs are the flavor's: `pci_passthrough:alias`, or a resource class of Placement. */
  flavor: nameSchema,
  network: nameSchema.optional(),
  /** Restricts the zones of the datacenter. */
  zones: z.array(nameSchema).min(1).optional(),
  /** Boots from a volume of Cinder as large as the root disk, of this type. */
  boot_volume: z.strictObject({ type: nameSchema.optional() }).optional(),
  images: imagesSchema.default({}),
});
export type OpenStackOffer = z.infer<typeof openstackOfferSchema>;
