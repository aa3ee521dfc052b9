import { z } from 'zod';
import { destroyReasons } from '../../../orchestrator/model/destroy-order.ts';
import { failureCodes } from '../../../orchestrator/model/platform-driver.ts';
import * as one from './version-1.ts';

/** Version 2 adds hosts that Berth chooses, numbered claims, destroy orders and cancellation to version 1. */

const hostName = z.string().min(1).max(255);
const ref = one.ref.describe(
  'The name of one attempt to make a machine or volume, which Berth chose before; [a-z0-9-]. Another attempt for the same instance has another name, such as with -g1 at its end: they share nothing.',
);
const host = hostName
  .exactOptional()
  .describe('The host that `place` named: it is made there, or nowhere. Absent: the driver chooses.');

const machineSpec = one.machineSpec.extend({ ref, host }).meta({ id: 'MachineSpec' });
const volumeSpec = one.volumeSpec.extend({ ref, host }).meta({ id: 'VolumeSpec' });

const fence = z
  .int()
  .min(0)
  .exactOptional()
  .describe(
    'Which claim of the work on this ref the request is of: where the change happens, the driver refuses a request whose fence is lower than one that it has seen for the ref, with `transient` and side effect `none`. Absent: a person tries the driver.',
  );
const order = z
  .object({ reason: z.enum(destroyReasons), by: one.text, at: one.millis })
  .describe(
    'The recorded request to remove it with its data: why, who recorded it, and when. Nothing is removed without one.',
  )
  .meta({ id: 'DestroyOrder' });
const step = { ref, fence };

/** The request of each method. */
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
    spec: volumeSpec.describe('What the copy is to be: its name, and its host.'),
  }),
  'volumes.destroy': one.requests['volumes.destroy'].extend({ ...step, order }),
};

/** A notification: it has no id and no answer. */
export const cancel = z
  .object({
    method: z.literal('cancel'),
    request: z.string().describe('The id of a request that was not answered yet.'),
  })
  .describe(
    'Berth has given the request up. The driver begins nothing more of it, ends what runs, and then answers that request. A program that has not answered it after 5 seconds is ended, and started again.',
  );

export const capabilities = one.capabilities.extend({
  place: z
    .boolean()
    .default(false)
    .describe('Whether machines are on hosts that Berth chooses among: `place` is answered.'),
  place_volume: z
    .boolean()
    .default(false)
    .describe('Whether volumes are on such hosts too: `volumes.place` is answered.'),
  copy_volume: z.boolean().default(false).describe('Whether `volumes.copy` is answered.'),
  disown: z.boolean().default(false).describe('Whether `disown` is answered.'),
  fences: z.boolean().default(false).describe('Whether `fence` is compared where the change happens.'),
});

const info = one.info.extend({ capabilities }).meta({ id: 'Info' });

const renamedTo = hostName
  .exactOptional()
  .describe('The name that it has on the platform now, where somebody gave it another.');
const machine = one.machine.extend({ ref, renamed_to: renamedTo }).meta({ id: 'Machine' });
const volume = one.volume
  .extend({
    ref,
    host: hostName
      .exactOptional()
      .describe('Which host of the platform has it. Absent: every host reaches it.'),
    renamed_to: renamedTo,
  })
  .meta({ id: 'Volume' });

const copies = z
  .array(z.object({ ref, name: one.text, host: hostName.exactOptional() }))
  .max(one.MAX_LISTED)
  .exactOptional()
  .describe(
    'What somebody copied from a machine or volume that is listed, mark included: the ref in its mark, and its own name. Berth raises an alarm, and never counts or destroys it.',
  );
const leftovers = z
  .array(z.object({ ref, host: hostName.exactOptional(), detail: one.text }))
  .max(one.MAX_LISTED)
  .exactOptional()
  .describe('Disks with a name of ours that belong to nothing that is listed; `detail`: what is there.');
const hosts = one.hosts.exactOptional();
const listedBeside = { hosts, copies, leftovers };

const placing = z.discriminatedUnion('answer', [
  z.object({
    answer: z.literal('placed'),
    hosts: z
      .array(
        z.object({
          host: hostName,
          units: one.units.describe('How many of them fit there, by the platform’s own count.'),
          counted: z
            .array(ref)
            .max(one.MAX_LISTED)
            .describe('The machines or volumes whose room is taken off `units` already.'),
        }),
      )
      .min(1)
      .max(10_000)
      .describe('Hosts that could take it now, the best first. Where spec.host is set, only that one.'),
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
