import { z } from 'zod';
import { cloudInitSchema } from '../../../contract/cloud-init.ts';
import { portForwardSchema } from '../../../contract/instance.ts';
import { destroyReasons, recordedOrder } from '../../../orchestrator/model/destroy-order.ts';
import { deviceStates, hostStates, type Inventory } from '../../../orchestrator/model/inventory.ts';
import {
  failureCodes,
  type Listing,
  type MachineSpec,
  type ObservedMachine,
  type ObservedVolume,
  type Presence,
  type Step,
  type VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';

/**
 * Longest time from sending an order to its deadline. A caller that lost the answer or crashed knows that nothing
 * begins after that time. Both ends use the clock of the same machine.
 */
export const ORDER_VALID_MS = 2_000;

/** Body of `POST /driver/<call>`; answered with 200 and the call's answer. */
export const requestSchema = z.object({
  /** The order is not begun after this time, in milliseconds since the epoch. */
  deadline: z.number(),
  /** The fence of the order's claim. */
  fence: z.number(),
  arguments: z.array(z.unknown()).max(3),
});
export type RemoteRequest = z.infer<typeof requestSchema>;

/** Other answers, by status; each has a body `{ error }`. */
export const refusals = {
  /** The token is missing or wrong: the request had no effect. */
  unauthorized: 401,
} as const;

const ref = z.string();
const cookie = z.string().nullable();
const empty = z.null();

const machineSpec = z
  .object({
    ref,
    offerId: z.string(),
    datacenter: z.string(),
    hostname: z.string(),
    image: z.string(),
    vcpus: z.number(),
    memoryGb: z.number(),
    rootDiskGb: z.number(),
    gpuCount: z.number(),
    gpuType: z.string().optional(),
    sshKeys: z.array(z.string()),
    cloudInit: cloudInitSchema.optional(),
    note: z.string(),
    avoidHosts: z.array(z.string()).exactOptional(),
  })
  .transform(({ gpuType, cloudInit, ...spec }): MachineSpec => ({ ...spec, gpuType, cloudInit }));

const volumeSpec = z
  .object({
    ref,
    datacenter: z.string(),
    sizeGb: z.number(),
    type: z.string().optional(),
    note: z.string(),
  })
  .transform(({ type, ...spec }): VolumeSpec => ({ ...spec, type }));

const machine: z.ZodType<ObservedMachine> = z.object({
  ref,
  power: z.enum(['building', 'running', 'stopping', 'stopped', 'starting', 'failed', 'destroying']),
  createdAt: z.number(),
  endpoint: z
    .object({
      publicIp: z.string(),
      privateIp: z.string().exactOptional(),
      sshPort: z.number(),
      sshUsername: z.string(),
      portForwards: z.array(portForwardSchema).exactOptional(),
      hostKeyFingerprint: z.string().exactOptional(),
    })
    .exactOptional(),
  host: z.string().exactOptional(),
  detail: z.string().exactOptional(),
  note: z.string().exactOptional(),
});

const volume: z.ZodType<ObservedVolume> = z.object({
  ref,
  attachedTo: z.array(ref),
  createdAt: z.number(),
  sizeGb: z.number().exactOptional(),
  note: z.string().exactOptional(),
});

const order = z
  .object({
    reason: z.enum(destroyReasons),
    by: z.string(),
    at: z.number(),
  })
  .transform(recordedOrder);

const unknown = z.object({ answer: z.literal('unknown'), reason: z.string() });

const share = z.object({ total: z.number(), taken: z.number() }).exactOptional();
const inventory: z.ZodType<Inventory> = z.union([
  z.object({
    answer: z.literal('counted'),
    free: z.array(
      z.object({
        offerId: z.string(),
        datacenter: z.string(),
        units: z.number(),
        obstacles: z.array(z.string()).exactOptional(),
      }),
    ),
    counted: z.array(ref).exactOptional(),
    hosts: z
      .array(
        z.object({
          host: z.string(),
          state: z.enum(hostStates),
          detail: z.string().exactOptional(),
          vcpus: share,
          memoryGb: share,
          diskGb: share,
          devices: z
            .array(
              z.object({
                id: z.string(),
                type: z.string(),
                state: z.enum(deviceStates),
                ref: ref.exactOptional(),
              }),
            )
            .exactOptional(),
        }),
      )
      .exactOptional(),
  }),
  unknown,
]);

function presenceOf<T>(value: z.ZodType<T>): z.ZodType<Presence<T>> {
  const observed = z.object({ answer: z.literal('observed'), value });
  return z.union([observed, z.object({ answer: z.literal('gone') }), unknown]) as z.ZodType<Presence<T>>;
}

function listingOf<T>(item: z.ZodType<T>): z.ZodType<Listing<T>> {
  return z.union([z.object({ answer: z.literal('listed'), items: z.array(item) }), unknown]);
}

const failed = z.object({
  outcome: z.literal('failed'),
  code: z.enum(failureCodes),
  sideEffect: z.enum(['none', 'possible', 'certain']),
  detail: z.string(),
  retryAfterMs: z.number().exactOptional(),
  host: z.string().exactOptional(),
});
const pending = z.object({
  outcome: z.literal('pending'),
  cookie: z.string(),
  pollAfterMs: z.number(),
  progress: z.object({ phase: z.string(), deadlineAt: z.number().exactOptional() }).exactOptional(),
});

function stepOf<T>(value: z.ZodType<T>): z.ZodType<Step<T>> {
  const done = z.object({ outcome: z.literal('done'), value });
  return z.union([done, pending, failed]) as z.ZodType<Step<T>>;
}

/** The driver's port as wire schemas: the arguments and the answer of each call. */
export const calls = {
  get: { arguments: z.tuple([ref]), answer: presenceOf(machine) },
  list: { arguments: z.tuple([]), answer: listingOf(machine) },
  inventory: { arguments: z.tuple([z.array(z.string())]), answer: inventory },
  create: { arguments: z.tuple([machineSpec, cookie]), answer: stepOf(machine) },
  stop: { arguments: z.tuple([ref, cookie]), answer: stepOf(machine) },
  start: { arguments: z.tuple([ref, cookie]), answer: stepOf(machine) },
  restart: { arguments: z.tuple([ref, z.string(), cookie]), answer: stepOf(machine) },
  destroy: { arguments: z.tuple([ref, cookie, order]), answer: stepOf(empty) },
  disown: { arguments: z.tuple([ref, cookie]), answer: stepOf(empty) },
  'writer.read': { arguments: z.tuple([z.string()]), answer: z.array(z.string()) },
  'writer.write': { arguments: z.tuple([z.string(), z.string()]), answer: z.object({}) },
  'volumes.get': { arguments: z.tuple([ref]), answer: presenceOf(volume) },
  'volumes.list': { arguments: z.tuple([]), answer: listingOf(volume) },
  'volumes.usage': { arguments: z.tuple([]), answer: listingOf(z.object({ ref, usedBytes: z.number() })) },
  'volumes.create': { arguments: z.tuple([volumeSpec, cookie]), answer: stepOf(volume) },
  'volumes.attach': { arguments: z.tuple([ref, ref, cookie]), answer: stepOf(empty) },
  'volumes.detach': { arguments: z.tuple([ref, ref, cookie]), answer: stepOf(empty) },
  'volumes.resize': { arguments: z.tuple([ref, z.number(), cookie]), answer: stepOf(volume) },
  'volumes.destroy': { arguments: z.tuple([ref, cookie, order]), answer: stepOf(empty) },
} satisfies Record<string, { arguments: z.ZodType<readonly unknown[]>; answer: z.ZodType }>;

export type CallName = keyof typeof calls;
export type CallArguments<Name extends CallName> = z.output<(typeof calls)[Name]['arguments']>;
export type CallAnswer<Name extends CallName> = z.output<(typeof calls)[Name]['answer']>;
