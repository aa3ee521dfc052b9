import { z } from 'zod';
import { destroyReasons, recordedOrder } from '../../../orchestrator/model/destroy-order.ts';

/**
 * Longest time from sending an order to its deadline. A caller that lost the answer or crashed knows that nothing
 * begins after that time. Both ends use the clock of the same machine.
 */
export const ORDER_VALID_MS = 2_000;

const ref = z.string();
const cookie = z.string().nullable();
const spec = z.looseObject({ ref });
const order = z
  .object({ reason: z.enum(destroyReasons), by: z.string(), at: z.number() })
  .transform(recordedOrder);

/**
 * The calls of the driver's port, with the arguments before the limits: `POST /driver/<call>`, answered with 200 and the
 * call's answer as JSON. Both ends are the same version of Berth, so specs and answers have no schema of their own. An
 * order to destroy has one: it names its request.
 */
export const calls = {
  get: z.tuple([ref]),
  list: z.tuple([]),
  inventory: z.tuple([z.array(z.string())]),
  create: z.tuple([spec, cookie]),
  stop: z.tuple([ref, cookie]),
  start: z.tuple([ref, cookie]),
  restart: z.tuple([ref, z.string(), cookie]),
  destroy: z.tuple([ref, cookie, order]),
  disown: z.tuple([ref, cookie]),
  'writer.read': z.tuple([z.string()]),
  'writer.write': z.tuple([z.string(), z.string()]),
  'volumes.get': z.tuple([ref]),
  'volumes.list': z.tuple([]),
  'volumes.usage': z.tuple([]),
  'volumes.create': z.tuple([spec, cookie]),
  'volumes.attach': z.tuple([ref, ref, cookie]),
  'volumes.detach': z.tuple([ref, ref, cookie]),
  'volumes.resize': z.tuple([ref, z.number(), cookie]),
  'volumes.destroy': z.tuple([ref, cookie, order]),
};
export type CallName = keyof typeof calls;

/** Body of a call. `arguments`: as in {@link calls}. */
export const requestSchema = z.object({
  /** The order is not begun after this time, in milliseconds since the epoch. */
  deadline: z.number(),
  /** The fence of the order's claim. */
  fence: z.number(),
  arguments: z.array(z.unknown()).max(3),
});
export type RemoteRequest = z.infer<typeof requestSchema>;

/** The token is missing or wrong: the request had no effect. */
export const UNAUTHORIZED = 401;
