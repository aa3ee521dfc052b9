import { z } from 'zod';
import { destroyReasons } from '../../../orchestrator/model/destroy-order.ts';
import { failureCodes } from '../../../orchestrator/model/platform-driver.ts';
import * as one from './version-1.ts';

/** Version 2 adds hosts that Berth chooses, numbered claims, destroy orders and cancellation to version 1. */

const hostName = z.string().min(1).max(255);
const ref = one.ref.describe(
  'The name of one attempt to make a machine or volume, chosen by Berth in advance; [a-z0-9-]. Each further attempt for the same instance has a new name, such as one that ends in -g1: attempts share nothing.',
);
const host = hostName
  .exactOptional()
  .describe('The host from the answer to `place`: make it there or fail. Absent: the driver chooses.');

const machineSpec = one.machineSpec.extend({ ref, host }).meta({ id: 'MachineSpec' });
const volumeSpec = one.volumeSpec.extend({ ref, host }).meta({ id: 'VolumeSpec' });

const fence = z
  .int()
  .min(0)
  .exactOptional()
  .describe(
    'The number of the claim under which Berth sends the request. Where the change happens, the driver refuses a request whose fence is lower than the highest that it has seen for the ref, with `transient` and side effect `none`. Absent: a person is trying the driver.',
  );
const order = z
  .object({ reason: z.enum(destroyReasons), by: one.text, at: one.millis })
  .describe(
    'The recorded request to remove it with its data: reason, author and time. Remove nothing without one.',
  )
  .meta({ id: 'DestroyOrder' });
const step = { ref, fence };
const writerKey = z
  .string()
  .max(100)
  .describe(
    'One for each Berth on this platform; [a-z0-9-]. Keep its text on the platform, not beside the driver.',
  );
const writerText = z.string().max(200);

export const requests = {
  ...one.requests,
  get: one.requests.get.extend({ ref }),
  place: z.object({
    ...one.common,
    method: z.literal('place'),
    spec: machineSpec,
    avoid_hosts: one.avoidHosts,
  }),
  create: one.requests.create.extend({ ...step, spec: machineSpec }),
  stop: one.requests.stop.extend(step),
  start: one.requests.start.extend(step),
  restart: one.requests.restart.extend(step),
  destroy: one.requests.destroy.extend({ ...step, order }),
  disown: one.requests.destroy.extend({ ...step, method: z.literal('disown') }),
  console: one.requests.console.extend({ ref }),
  'writer.read': z.object({ ...one.common, method: z.literal('writer.read'), key: writerKey }),
  'writer.write': z.object({
    ...one.common,
    method: z.literal('writer.write'),
    key: writerKey,
    text: writerText.describe('Replaces the text of the key; an empty text removes it.'),
  }),
  'volumes.get': one.requests['volumes.get'].extend({ ref }),
  'volumes.place': z.object({
    ...one.common,
    method: z.literal('volumes.place'),
    spec: volumeSpec,
    avoid_hosts: one.avoidHosts,
  }),
  'volumes.create': one.requests['volumes.create'].extend({ ...step, spec: volumeSpec }),
  'volumes.attach': one.requests['volumes.attach'].extend({ ...step, machine: ref }),
  'volumes.detach': one.requests['volumes.detach'].extend({ ...step, machine: ref }),
  'volumes.resize': one.requests['volumes.resize'].extend(step),
  'volumes.copy': one.requests['volumes.create'].extend({
    ...step,
    method: z.literal('volumes.copy'),
    spec: volumeSpec.describe('The name and the host of the copy.'),
  }),
  'volumes.destroy': one.requests['volumes.destroy'].extend({ ...step, order }),
};

/** A notification: it has no id and no answer. */
export const cancel = z
  .object({
    method: z.literal('cancel'),
    request: z.string().describe('The id of an unanswered request.'),
  })
  .describe(
    'Berth has cancelled the request. The driver starts nothing more for it, stops what is running, and then answers that request. A program that has not answered it after 5 seconds is stopped and restarted.',
  );

export const capabilities = one.capabilities.extend({
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
    .describe('Whether the driver compares `fence` where the change happens.'),
  writer_mark: z
    .boolean()
    .default(false)
    .describe('Whether the driver implements `writer.read` and `writer.write`.'),
});

const info = one.info.extend({ capabilities }).meta({ id: 'Info' });

const renamedTo = hostName.exactOptional().describe('Its current name on the platform, if it was renamed.');
const machine = one.machine.extend({ ref, renamed_to: renamedTo }).meta({ id: 'Machine' });
const volume = one.volume
  .extend({
    ref,
    host: hostName.exactOptional().describe('The host that it is on. Absent: every host can reach it.'),
    renamed_to: renamedTo,
  })
  .meta({ id: 'Volume' });

const copies = z
  .array(z.object({ ref, name: one.text, host: hostName.exactOptional() }))
  .max(one.MAX_LISTED)
  .exactOptional()
  .describe(
    'Copies of listed machines or volumes that carry the mark of the original: the ref in the mark, and the name of the copy. Berth raises an alarm, and never counts or destroys them.',
  );
const leftovers = z
  .array(
    z.object({
      ref,
      host: hostName.exactOptional(),
      detail: one.text,
      note: one.note.exactOptional().describe('`spec.note` of the create, if a part keeps it.'),
    }),
  )
  .max(one.MAX_LISTED)
  .exactOptional()
  .describe(
    'Parts with a ref of Berth, such as disks, ports or addresses, whose machine or volume is missing although nobody ordered its removal. One entry for each ref; `detail` names each part and its id.',
  );
const hosts = one.hosts.exactOptional();
const listedBeside = { hosts, copies, leftovers };

const placing = z.discriminatedUnion('answer', [
  z.object({
    answer: z.literal('placed'),
    hosts: z
      .array(
        z.object({
          host: hostName,
          units: one.units.describe('Number of units that fit there, as counted by the platform.'),
          counted: z
            .array(ref)
            .max(one.MAX_LISTED)
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
    detail: one.text,
  }),
  one.unknown,
]);

const codes = z.enum(failureCodes);
const nothing = one.stepOf(z.null(), codes);
const machineStep = one.stepOf(machine, codes);
const volumeStep = one.stepOf(volume, codes);

/** The answer to each method. Fields that are not named here are ignored. */
export const results = {
  ...one.results,
  info,
  get: one.presenceOf(machine, { hosts }),
  list: one.listingOf(machine, listedBeside),
  place: placing,
  create: machineStep,
  stop: machineStep,
  start: machineStep,
  restart: machineStep,
  destroy: nothing,
  disown: nothing,
  'writer.read': z.object({
    texts: z
      .array(writerText)
      .max(10_000)
      .describe(
        'The text of the key, as it was written: of each host that answers, if each has its own. Empty: none.',
      ),
  }),
  'writer.write': z.null(),
  'volumes.get': one.presenceOf(volume, { hosts }),
  'volumes.list': one.listingOf(volume, listedBeside),
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
