import { z } from 'zod';
import { destroyReasons } from '../../../orchestrator/model/destroy-order.ts';
import { deviceStates, hostStates } from '../../../orchestrator/model/inventory.ts';
import { failureCodes } from '../../../orchestrator/model/platform-driver.ts';
import {
  avoidHosts,
  cookie,
  hostName,
  info,
  machine,
  machineSpec,
  millis,
  note,
  ref,
  sizeGb,
  soldOffer,
  text,
  volume,
  volumeSpec,
} from './objects.ts';

export const id = z.string().describe('Repeated in the answer.');
const expiresAt = millis.describe(
  'Milliseconds since the Unix epoch. A driver over HTTP, or one whose `concurrency` is above 1, does not start a request after this time: it fails it with `transient` and side effect `none`. For any other driver, Berth holds requests back instead.',
);
const given = z
  .union([cookie, z.null()])
  .describe('null: the first call, or the first after Berth started; the step may already be in progress.');
const fence = z
  .int()
  .min(0)
  .optional()
  .describe(
    'If the capability fences is true: the number of the claim under which Berth sends the request. Where the change happens, the driver refuses a request whose fence is lower than the highest that it has seen for the ref, with `transient` and side effect `none`. Absent: a person is trying the driver.',
  );
const order = z
  .object({ reason: z.enum(destroyReasons), by: text, at: millis })
  .describe(
    'If the capability orders is true: the recorded request to remove it with its data: reason, author and time. Remove nothing without one.',
  )
  .meta({ id: 'DestroyOrder' })
  .optional();
const writerKey = z
  .string()
  .max(100)
  .describe(
    'One for each Berth on this platform; [a-z0-9-]. Keep its text on the platform, not beside the driver.',
  );
const writerText = z.string().max(200);

const common = { id, expires_at: expiresAt };
const aboutRef = { ...common, ref };
const step = { ...common, ref, cookie: given, fence };

export const requests = {
  info: z.object({ ...common, method: z.literal('info') }),
  get: z.object({ ...aboutRef, method: z.literal('get') }),
  list: z.object({ ...common, method: z.literal('list') }),
  place: z.object({ ...common, method: z.literal('place'), spec: machineSpec, avoid_hosts: avoidHosts }),
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
  destroy: z.object({ ...step, method: z.literal('destroy'), order }),
  disown: z.object({ ...step, method: z.literal('disown') }),
  inventory: z.object({
    ...common,
    method: z.literal('inventory'),
    offers: z.array(soldOffer),
    avoid_hosts: avoidHosts,
  }),
  console: z.object({ ...aboutRef, method: z.literal('console') }),
  'writer.read': z.object({ ...common, method: z.literal('writer.read'), key: writerKey }),
  'writer.write': z.object({
    ...common,
    method: z.literal('writer.write'),
    key: writerKey,
    text: writerText.describe('Replaces the text of the key; an empty text removes it.'),
  }),
  'volumes.get': z.object({ ...aboutRef, method: z.literal('volumes.get') }),
  'volumes.list': z.object({ ...common, method: z.literal('volumes.list') }),
  'volumes.place': z.object({
    ...common,
    method: z.literal('volumes.place'),
    spec: volumeSpec,
    avoid_hosts: avoidHosts,
  }),
  'volumes.create': z.object({ ...step, method: z.literal('volumes.create'), spec: volumeSpec }),
  'volumes.attach': z.object({ ...step, method: z.literal('volumes.attach'), machine: ref }),
  'volumes.detach': z.object({ ...step, method: z.literal('volumes.detach'), machine: ref }),
  'volumes.resize': z.object({ ...step, method: z.literal('volumes.resize'), size_gb: sizeGb }),
  'volumes.copy': z.object({
    ...step,
    method: z.literal('volumes.copy'),
    spec: volumeSpec.describe('The name and the host of the copy.'),
  }),
  'volumes.destroy': z.object({ ...step, method: z.literal('volumes.destroy'), order }),
};

/** A notification: it has no id and no answer. */
export const cancel = z
  .object({
    method: z.literal('cancel'),
    request: z.string().describe('The id of an unanswered request.'),
  })
  .describe(
    'Sent if the capability cancel is true: Berth has cancelled the request. The driver starts nothing more for it, stops what is running, and then answers that request. A program that has not answered it after 5 seconds is stopped and restarted.',
  );

const hostNames = z.array(z.string().max(255)).max(10_000);
const hosts = z
  .object({
    answered: hostNames.describe('Hosts that are listed completely.'),
    silent: hostNames.describe(
      'Hosts that do not answer although the platform does: their machines may be missing from the list.',
    ),
  })
  .describe(
    'Give it if machines have a `host` and a single host can fail to answer. A machine last seen on a host that is not in `answered` is not treated as gone. Absent: the answer covers every current and former host.',
  )
  .meta({ id: 'Hosts' })
  .optional();

const unknown = z.object({ answer: z.literal('unknown'), reason: text });

const presenceOf = <T extends z.ZodType>(value: T) =>
  z.discriminatedUnion('answer', [
    z.object({ answer: z.literal('observed'), value }),
    z
      .object({ answer: z.literal('gone'), hosts })
      .describe('Proof that it does not exist. In doubt, answer unknown.'),
    unknown.extend({ hosts }),
  ]);

const MAX_LISTED = 200_000;
export const listedItems = z.object({ items: z.array(z.unknown()).max(MAX_LISTED) });

const copies = z
  .array(z.object({ ref, name: text, host: hostName.optional() }))
  .max(MAX_LISTED)
  .optional()
  .describe(
    'Copies of listed machines or volumes that carry the mark of the original: the ref in the mark, and the name of the copy. Berth raises an alarm, and never counts or destroys them.',
  );
const leftovers = z
  .array(
    z.object({
      ref,
      host: hostName.optional(),
      detail: text,
      note: note.optional().describe('`spec.note` of the create, if a part keeps it.'),
    }),
  )
  .max(MAX_LISTED)
  .optional()
  .describe(
    'Parts with a ref of Berth, such as disks, ports or addresses, whose machine or volume is missing although nobody ordered its removal. One entry for each ref; `detail` names each part and its id.',
  );

const listingOf = <T extends z.ZodType>(item: T) =>
  z.discriminatedUnion('answer', [
    z.object({
      answer: z.literal('listed'),
      items: z.array(item).max(MAX_LISTED),
      hosts,
      copies,
      leftovers,
    }),
    unknown,
  ]);

const progress = z
  .object({
    phase: text.min(1).describe('What the platform is doing, in its own words, such as `spawning`.'),
    deadline_at: millis
      .optional()
      .describe('When this phase is overdue: Berth raises an alarm then. Absent: never.'),
  })
  .meta({ id: 'Progress' })
  .optional()
  .describe('Shown to operators; Berth decides nothing by it. Absent: the platform does not say.');

const stepOf = <T extends z.ZodType>(value: T) =>
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
      code: z.enum(failureCodes),
      side_effect: z
        .enum(['none', 'possible', 'certain'])
        .describe('Whether the failed step may have changed something.'),
      detail: text,
      retry_after_ms: millis.optional(),
      host: text.optional().describe('The host that refused a create, if the driver chose it.'),
    }),
  ]);

const units = z.int().min(0);
const placing = z.discriminatedUnion('answer', [
  z.object({
    answer: z.literal('placed'),
    hosts: z
      .array(
        z.object({
          host: hostName,
          units: units.describe('Number of units that fit there, as counted by the platform.'),
          counted: z
            .array(ref)
            .max(MAX_LISTED)
            .describe('The machines or volumes that `units` already accounts for.'),
        }),
      )
      .min(1)
      .max(10_000)
      .describe('Hosts that have room for it now, best first. If spec.host is set, only that one.'),
  }),
  z.object({
    answer: z.literal('refused'),
    code: z.enum(['capacity', 'image_missing', 'invalid']),
    detail: text,
  }),
  unknown,
]);

const share = z.object({ total: z.number(), taken: z.number() });
const observedHost = z.object({
  host: text,
  state: z.enum(hostStates).describe('`closed`: nothing new is placed there; `silent`: it does not answer.'),
  detail: text.optional().describe('The reason why it is not open.'),
  vcpus: share.optional(),
  memory_gb: share.optional(),
  disk_gb: share.optional(),
  devices: z
    .array(
      z.object({
        id: text,
        type: text,
        state: z.enum(deviceStates),
        ref: text.optional().describe('The machine that has it.'),
        detail: text.optional(),
      }),
    )
    .max(1_000)
    .optional(),
});

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
      .optional()
      .describe(
        'Why fewer units are free than the hosts have room for, such as `quota: cores 40 of 40`; for the operator only.',
      ),
    hosts: z
      .array(observedHost)
      .max(10_000)
      .optional()
      .describe('Every host, for the operator only; Berth decides nothing by it.'),
  }),
  unknown,
]);

const nothing = stepOf(z.null());
const machineStep = stepOf(machine);
const volumeStep = stepOf(volume);

/** The answer to each method. Fields that are not named here are ignored. */
export const results = {
  info,
  get: presenceOf(machine),
  list: listingOf(machine),
  place: placing,
  create: machineStep,
  stop: machineStep,
  start: machineStep,
  restart: machineStep,
  destroy: nothing,
  disown: nothing,
  inventory,
  console: z.object({
    text: z
      .string()
      .max(64 * 1024)
      .nullable(),
  }),
  'writer.read': z.object({
    texts: z
      .array(writerText)
      .max(10_000)
      .describe(
        'The text of the key, as it was written: of each host that answers, if each has its own. Empty: none.',
      ),
  }),
  'writer.write': z.null(),
  'volumes.get': presenceOf(volume),
  'volumes.list': listingOf(volume),
  'volumes.place': placing,
  'volumes.create': volumeStep,
  'volumes.attach': nothing,
  'volumes.detach': nothing,
  'volumes.resize': volumeStep,
  'volumes.copy': volumeStep,
  'volumes.destroy': nothing,
} satisfies Record<keyof typeof requests, z.ZodType>;

/** The item schemas of these methods' listings. */
export const listed = { list: machine, 'volumes.list': volume };

export type Method = keyof typeof requests;
/** The fields of a request besides its id, method, deadline, claim and order. */
export type Arguments<M extends Method> = Omit<
  z.infer<(typeof requests)[M]>,
  'id' | 'method' | 'expires_at' | 'fence' | 'order'
>;
export type Request = { id: string; method: Method; expires_at: number } & Record<string, unknown>;
export type Result<M extends Method> = z.infer<(typeof results)[M]>;

/** One line from the driver: the result of a request, or an error text. */
export const answerSchema = z.union([
  z.object({ id: z.string(), result: z.unknown() }).refine((answer) => answer.result !== undefined),
  z.object({ id: z.string(), error: text }),
]);
export type Answer = { id: string; result: unknown } | { id: string; error: string };
