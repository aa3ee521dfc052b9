import { z } from 'zod';
import { cloudInitSchema } from '../../../contract/cloud-init.ts';
import { portForwardSchema } from '../../../contract/instance.ts';
import { deviceStates, hostStates } from '../../../orchestrator/model/inventory.ts';
import { failureCodes, powers } from '../../../orchestrator/model/platform-driver.ts';

export const MAX_TEXT = 10_000;
export const text = z.string().max(MAX_TEXT);
export const ref = z
  .string()
  .min(1)
  .max(255)
  .describe('The name of a machine or volume, chosen by Berth before the create; [a-z0-9-].');
export const millis = z.number().min(0).max(8_640_000_000_000_000);
const cookie = z
  .string()
  .regex(/^\P{Cc}{1,1000}$/u)
  .describe('A value that the driver chooses; Berth passes it back when it repeats the step.');
export const note = z.string().max(8 * 1024);
const sizeGb = z.number().positive();

export const avoidHosts = z
  .array(z.string())
  .exactOptional()
  .describe('Hosts that an operator has cordoned: place nothing new there. Absent: none.');

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
  })
  .meta({ id: 'MachineSpec' });

export const volumeSpec = z
  .object({ ref, datacenter: z.string(), size_gb: sizeGb, type: z.string().nullable(), note })
  .meta({ id: 'VolumeSpec' });

const soldOffer = z
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

export const id = z.string().describe('Repeated in the answer.');
const expiresAt = millis.describe(
  'Milliseconds since the Unix epoch. A driver over HTTP, or one whose `concurrency` is above 1, does not start a request after this time: it fails it with `transient` and side effect `none`. For any other driver, Berth holds requests back instead.',
);
const given = z
  .union([cookie, z.null()])
  .describe('null: the first call, or the first after Berth started; the step may already be in progress.');
export const common = { id, expires_at: expiresAt };
const aboutRef = { ...common, ref };
const step = { ...common, ref, cookie: given };

export const requests = {
  info: z.object({
    ...common,
    method: z.literal('info'),
    protocols: z.array(z.int()).describe('The protocol versions that Berth supports.'),
  }),
  get: z.object({ ...aboutRef, method: z.literal('get') }),
  list: z.object({ ...common, method: z.literal('list') }),
  create: z.object({ ...step, method: z.literal('create'), spec: machineSpec }),
  stop: z.object({ ...step, method: z.literal('stop') }),
  start: z.object({ ...step, method: z.literal('start') }),
  restart: z.object({
    ...step,
    method: z.literal('restart'),
    restart_id: z
      .string()
      .describe('Identifies one restart: repeated calls with the same id reset the machine once.'),
  }),
  destroy: z.object({ ...step, method: z.literal('destroy') }),
  inventory: z.object({
    ...common,
    method: z.literal('inventory'),
    offers: z.array(soldOffer),
    avoid_hosts: avoidHosts,
  }),
  console: z.object({ ...aboutRef, method: z.literal('console') }),
  'volumes.get': z.object({ ...aboutRef, method: z.literal('volumes.get') }),
  'volumes.list': z.object({ ...common, method: z.literal('volumes.list') }),
  'volumes.create': z.object({ ...step, method: z.literal('volumes.create'), spec: volumeSpec }),
  'volumes.attach': z.object({ ...step, method: z.literal('volumes.attach'), machine: ref }),
  'volumes.detach': z.object({ ...step, method: z.literal('volumes.detach'), machine: ref }),
  'volumes.resize': z.object({ ...step, method: z.literal('volumes.resize'), size_gb: sizeGb }),
  'volumes.destroy': z.object({ ...step, method: z.literal('volumes.destroy') }),
};

/**
 * A driver does not have a capability that it does not name. `create_visible_within_ms` is a promise, so it has no
 * default.
 */
export const capabilities = z.object({
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
});

export const info = z
  .object({
    protocol: z.int().describe('The protocol version that the driver uses, one of the offered versions.'),
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
    capabilities: capabilities,
  })
  .meta({ id: 'Info' });

export const machine = z
  .object({
    ref,
    power: z.enum(powers),
    created_at: millis.describe('Milliseconds since the Unix epoch; never changes.'),
    endpoint: z
      .object({
        public_ip: z.string().min(1).max(255),
        private_ip: z.string().max(255).exactOptional(),
        ssh_port: z.int().min(1).max(65_535),
        ssh_username: z.string().min(1).max(255),
        port_forwards: z.array(portForwardSchema).max(1000).exactOptional(),
        host_key_fingerprint: z
          .string()
          .max(255)
          .exactOptional()
          .describe('`SHA256:…` as OpenSSH prints it, if the driver knows it.'),
      })
      .exactOptional()
      .describe('Absent until the machine has an address.'),
    host: z
      .string()
      .max(255)
      .exactOptional()
      .describe('The host that it is on, if the platform has several.'),
    detail: text.exactOptional().describe('The reason, if `power` is `failed` or `paused`.'),
    fault: z
      .object({ finding: text, remedy: text })
      .exactOptional()
      .describe('A problem of a machine that still runs; shown in an alarm.'),
    note: note.exactOptional(),
  })
  .meta({ id: 'Machine' });

export const volume = z
  .object({
    ref,
    attached_to: z.array(ref).max(10_000),
    created_at: millis,
    size_gb: sizeGb.exactOptional(),
    note: note.exactOptional(),
  })
  .meta({ id: 'Volume' });

export const unknown = z.object({ answer: z.literal('unknown'), reason: text });

const hostNames = z.array(z.string().max(255)).max(10_000);
export const hosts = z
  .object({
    answered: hostNames.describe('Hosts that are listed completely.'),
    silent: hostNames.describe(
      'Hosts that do not answer although the platform does: their machines may be missing from the list.',
    ),
  })
  .describe(
    'Give it if machines have a `host` and a single host can fail to answer. A machine last seen on a host that is not in `answered` is not treated as gone. Absent: the answer covers every current and former host.',
  )
  .meta({ id: 'Hosts' });

export const presenceOf = <T extends z.ZodType, H extends z.ZodRawShape>(value: T, more: H) =>
  z.discriminatedUnion('answer', [
    z.object({ answer: z.literal('observed'), value }),
    z
      .object({ answer: z.literal('gone'), ...more })
      .describe('Proof that it does not exist. In doubt, answer unknown.'),
    z.object({ ...unknown.shape, ...more }),
  ]);

export const MAX_LISTED = 200_000;
export const listedItems = z.object({ items: z.array(z.unknown()).max(MAX_LISTED) });

export const listingOf = <T extends z.ZodType, H extends z.ZodRawShape>(item: T, more: H) =>
  z.discriminatedUnion('answer', [
    z.object({ answer: z.literal('listed'), items: z.array(item).max(MAX_LISTED), ...more }),
    unknown,
  ]);

const progress = z
  .object({
    phase: text.min(1).describe('What the platform is doing, in its own words, such as `spawning`.'),
    deadline_at: millis
      .exactOptional()
      .describe('When this phase is overdue: Berth raises an alarm then. Absent: never.'),
  })
  .meta({ id: 'Progress' })
  .exactOptional()
  .describe('Shown to operators; Berth decides nothing by it. Absent: the platform does not say.');

const codes = z.enum(failureCodes).exclude(['elsewhere', 'unfinished']);

export const stepOf = <T extends z.ZodType, C extends z.ZodType>(value: T, code: C) =>
  z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('done'), value }),
    z.object({
      outcome: z.literal('pending'),
      cookie: cookie.default('begun'),
      poll_after_ms: millis.default(1_000),
      progress,
    }),
    z.object({
      outcome: z.literal('failed'),
      code,
      side_effect: z
        .enum(['none', 'possible', 'certain'])
        .describe('Whether the failed step may have changed something.'),
      detail: text,
      retry_after_ms: millis.exactOptional(),
      host: text.exactOptional().describe('The host that refused a create, if the driver chose it.'),
    }),
  ]);

const share = z.object({ total: z.number(), taken: z.number() });
const observedHost = z.object({
  host: text,
  state: z.enum(hostStates).describe('`closed`: nothing new is placed there; `silent`: it does not answer.'),
  detail: text.exactOptional().describe('The reason why it is not open.'),
  vcpus: share.exactOptional(),
  memory_gb: share.exactOptional(),
  disk_gb: share.exactOptional(),
  devices: z
    .array(
      z.object({
        id: text,
        type: text,
        state: z.enum(deviceStates),
        ref: text.exactOptional().describe('The machine that has it.'),
        detail: text.exactOptional(),
      }),
    )
    .max(1_000)
    .exactOptional(),
});

export const units = z.int().min(0);
const inventory = z.discriminatedUnion('answer', [
  z.object({
    answer: z.literal('counted'),
    free: z
      .union([units, z.array(z.object({ offer_id: z.string(), datacenter: z.string(), units })).max(100_000)])
      .describe(
        'Free units by offer and datacenter. A single number applies to each offer in each of its datacenters.',
      ),
    limited_by: z
      .array(text.min(1))
      .max(100)
      .exactOptional()
      .describe(
        'Why fewer units are free than the hosts have room for, such as `quota: cores 40 of 40`; for the operator only.',
      ),
    hosts: z
      .array(observedHost)
      .max(10_000)
      .exactOptional()
      .describe('Every host, for the operator only; Berth decides nothing by it.'),
  }),
  unknown,
]);

/** The answer to each method. Fields that are not named here are ignored. */
export const results = {
  info,
  get: presenceOf(machine, { hosts: hosts.exactOptional() }),
  list: listingOf(machine, { hosts: hosts.exactOptional() }),
  create: stepOf(machine, codes),
  stop: stepOf(machine, codes),
  start: stepOf(machine, codes),
  restart: stepOf(machine, codes),
  destroy: stepOf(z.null(), codes),
  inventory,
  console: z.object({
    text: z
      .string()
      .max(64 * 1024)
      .nullable(),
  }),
  'volumes.get': presenceOf(volume, {}),
  'volumes.list': listingOf(volume, {}),
  'volumes.create': stepOf(volume, codes),
  'volumes.attach': stepOf(z.null(), codes),
  'volumes.detach': stepOf(z.null(), codes),
  'volumes.resize': stepOf(volume, codes),
  'volumes.destroy': stepOf(z.null(), codes),
} satisfies Record<keyof typeof requests, z.ZodType>;
