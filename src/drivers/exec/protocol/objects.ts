import { z } from 'zod';
import { cloudInitSchema } from '../../../contract/cloud-init.ts';
import { portForwardSchema } from '../../../contract/instance.ts';
import { powers } from '../../../orchestrator/model/platform-driver.ts';

export const MAX_TEXT = 10_000;
export const text = z.string().max(MAX_TEXT);
export const ref = z
  .string()
  .min(1)
  .max(255)
  .describe(
    'The name of one attempt to make a machine or volume, chosen by Berth in advance; [a-z0-9-]. Each further attempt for the same instance has a new name, such as one that ends in -g1: attempts share nothing.',
  );
export const hostName = z.string().min(1).max(255);
export const millis = z.number().min(0).max(8_640_000_000_000_000);
export const cookie = z
  .string()
  .regex(/^\P{Cc}{1,1000}$/u)
  .describe('A value that the driver chooses; Berth passes it back when it repeats the step.');
export const note = z.string().max(8 * 1024);
export const sizeGb = z.number().positive();
const host = hostName
  .optional()
  .describe('The host from the answer to `place`: make it there or fail. Absent: the driver chooses.');

export const avoidHosts = z
  .array(z.string())
  .describe('Hosts that an operator has cordoned: place nothing new there.');

export const machineSpec = z
  .object({
    ref,
    offer_id: z.string(),
    machine: z
      .record(z.string(), z.json())
      .describe("The offer's `machine:` section of the catalog, in a format that the driver defines."),
    datacenter: z.string(),
    hostname: z.string(),
    image: z.string(),
    vcpus: z.number(),
    memory_gb: z.number(),
    root_disk_gb: z.number(),
    gpu_count: z.number(),
    gpu_type: z.string().nullable(),
    ssh_keys: z.array(z.string()).describe('authorized_keys lines. Inject all of them.'),
    cloud_init: cloudInitSchema.nullable().describe("The tenant's cloud-init fields; null: none."),
    vendor_data: z
      .string()
      .describe('Rendered cloud-init vendor data of the provider: the login user and the keys.'),
    user_data: z.string().describe("Rendered cloud-init user data with the tenant's fields."),
    note: note.describe('Store it with the machine and return it if the capability keeps_notes is true.'),
    avoid_hosts: avoidHosts,
    host,
  })
  .meta({ id: 'MachineSpec' });

export const volumeSpec = z
  .object({ ref, datacenter: z.string(), size_gb: sizeGb, type: z.string().nullable(), note, host })
  .meta({ id: 'VolumeSpec' });

export const soldOffer = z
  .object({
    offer_id: z.string(),
    datacenters: z.array(z.string()),
    vcpus: z.number(),
    memory_gb: z.number(),
    root_disk_gb: z.number(),
    gpu_count: z.number(),
    gpu_type: z.string().nullable(),
    machine: z.record(z.string(), z.json()),
  })
  .meta({ id: 'Offer' });

/**
 * A driver does not have a capability that it does not name. `create_visible_within_ms` is a promise, so it has no
 * default.
 */
const capabilities = z.object({
  stop: z.boolean().default(false).describe('Whether a machine can be stopped with its disk kept.'),
  resume: z.boolean().default(false).describe('Whether a stopped machine can be started again.'),
  restart: z.boolean().default(false).describe('Whether a running machine can be reset, its disk kept.'),
  attach_volume: z
    .enum(['hot', 'cold', 'none'])
    .default('none')
    .describe('hot: while the machine runs; cold: only while it is stopped; none: there are no volumes.'),
  resize_volume: z
    .enum(['attached', 'detached', 'none'])
    .default('none')
    .describe('attached: volumes grow at any time; detached: only while not attached; none: never.'),
  create_visible_within_ms: millis
    .max(3_600_000)
    .describe('Maximum time from the start of a create until `get` and `list` show it.'),
  keeps_notes: z.boolean().default(false).describe('Whether observations include the note of the create.'),
  cloud_init_bytes: z
    .int()
    .min(0)
    .default(0)
    .describe('Maximum length of user_data. 0: tenant cloud-init is not supported.'),
  inventory: z.boolean().default(false).describe('Whether the driver implements `inventory`.'),
  console: z.boolean().default(false).describe('Whether the driver implements `console`.'),
  place: z
    .boolean()
    .default(false)
    .describe('Whether Berth chooses the host of a machine: the driver implements `place`.'),
  place_volume: z
    .boolean()
    .default(false)
    .describe('Whether Berth chooses the host of a volume: the driver implements `volumes.place`.'),
  copy_volume: z.boolean().default(false).describe('Whether the driver implements `volumes.copy`.'),
  disown: z.boolean().default(false).describe('Whether the driver implements `disown`.'),
  fences: z
    .boolean()
    .default(false)
    .describe('Whether requests have a `fence`, which the driver compares where the change happens.'),
  orders: z
    .boolean()
    .default(false)
    .describe('Whether a request to destroy has its `order`, without which the driver removes nothing.'),
  cancel: z
    .boolean()
    .default(false)
    .describe('Whether the driver reads `cancel` while a request is open. Ignored over HTTP.'),
  writer_mark: z
    .boolean()
    .default(false)
    .describe('Whether the driver implements `writer.read` and `writer.write`.'),
});

export const info = z
  .object({
    protocol: z.literal(1),
    name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/),
    version: z.string().max(100).default(''),
    login_user: z
      .string()
      .regex(/^[a-z_][a-z0-9_-]{0,31}$/)
      .default('ubuntu')
      .describe('The user that vendor_data creates.'),
    concurrency: z
      .int()
      .min(1)
      .max(1_000)
      .default(1)
      .describe(
        'Maximum number of open requests to the program. Berth sends no more until one is answered, so with 1 no request waits in a pipe. Ignored over HTTP.',
      ),
    capabilities,
  })
  .meta({ id: 'Info' });

const renamedTo = hostName.optional().describe('Its current name on the platform, if it was renamed.');

export const machine = z
  .object({
    ref,
    power: z.enum(powers),
    created_at: millis.describe('Milliseconds since the Unix epoch; never changes.'),
    endpoint: z
      .object({
        public_ip: z.string().min(1).max(255),
        private_ip: z.string().max(255).optional(),
        ssh_port: z.int().min(1).max(65_535),
        ssh_username: z.string().min(1).max(255),
        port_forwards: z.array(portForwardSchema).max(1000).optional(),
        host_key_fingerprint: z
          .string()
          .max(255)
          .optional()
          .describe('`SHA256:…` as OpenSSH prints it, if the driver knows it.'),
      })
      .optional()
      .describe('Absent until the machine has an address.'),
    host: z.string().max(255).optional().describe('The host that it is on, if the platform has several.'),
    detail: text.optional().describe('The reason, if `power` is `failed` or `paused`.'),
    fault: z
      .object({ finding: text, remedy: text })
      .optional()
      .describe('A problem of a machine that still runs; shown in an alarm.'),
    note: note.optional(),
    renamed_to: renamedTo,
  })
  .meta({ id: 'Machine' });

export const volume = z
  .object({
    ref,
    attached_to: z.array(ref).max(10_000),
    created_at: millis,
    size_gb: sizeGb.optional(),
    note: note.optional(),
    host: hostName.optional().describe('The host that it is on. Absent: every host can reach it.'),
    renamed_to: renamedTo,
  })
  .meta({ id: 'Volume' });

export type Info = z.infer<typeof info>;
export type Capabilities = Info['capabilities'];
export type WireMachineSpec = z.infer<typeof machineSpec>;
export type WireVolumeSpec = z.infer<typeof volumeSpec>;
export type WireOffer = z.infer<typeof soldOffer>;
