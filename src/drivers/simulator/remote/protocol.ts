import { z } from 'zod';

/**
 * Longest time from sending an order to its deadline. A caller that lost the answer or crashed knows that nothing
 * begins after that time. Both ends use the clock of the same machine.
 */
export const ORDER_VALID_MS = 2_000;

/** The calls of the driver's port: `POST /driver/<call>`, answered with 200 and the call's answer as JSON. */
export const calls = [
  'get',
  'list',
  'inventory',
  'create',
  'stop',
  'start',
  'restart',
  'destroy',
  'disown',
  'writer.read',
  'writer.write',
  'volumes.get',
  'volumes.list',
  'volumes.usage',
  'volumes.create',
  'volumes.attach',
  'volumes.detach',
  'volumes.resize',
  'volumes.destroy',
] as const;
export type CallName = (typeof calls)[number];

/** Body of a call. Both ends are the same version of Berth, so the arguments and answers have no schema of their own. */
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
