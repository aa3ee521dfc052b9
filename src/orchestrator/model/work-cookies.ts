import { z } from 'zod';

/** Encodes the state that a use case or a step stores in the cookie of a row of work for the next call. */
interface CookieCodec<T> {
  encode(value: T): string;
  /** Undefined if there is no cookie, or it belongs to another kind of work. */
  decode(cookie: string | null): T | undefined;
}

function cookieCodec<T>(schema: z.ZodType<T>): CookieCodec<T> {
  return {
    encode: (value) => JSON.stringify(value),
    decode: (cookie) => {
      if (cookie === null) return undefined;
      try {
        return schema.safeParse(JSON.parse(cookie)).data;
      } catch {
        return undefined;
      }
    },
  };
}

const restartSchema = z.object({
  /** When it was accepted, in milliseconds since the epoch. */
  since: z.int().nonnegative(),
  /** Identifies this restart of the machine to the platform. */
  id: z.string().min(1),
  /** `order`: the platform has not confirmed the restart. `prove`: it has; the SSH endpoint is not proved yet. */
  phase: z.enum(['order', 'prove']),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type Restart = z.infer<typeof restartSchema>;

export const restartCookie: CookieCodec<Restart> = cookieCodec(restartSchema);

const resizeSchema = z.object({
  /** The new size of the volume. */
  sizeGb: z.number().positive(),
  /** The price at the new size. */
  priceMicroUsdPerHour: z.int().nonnegative(),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type Resize = z.infer<typeof resizeSchema>;

export const resizeCookie: CookieCodec<Resize> = cookieCodec(resizeSchema);

const volumeMoveSchema = z.object({
  /** The name of the copy. */
  target: z.string().min(1),
  /** The host of the copy. */
  host: z.string().min(1),
  /** The driver's cookie between two calls. */
  driver: z.string().nullable(),
});
export type VolumeMove = z.infer<typeof volumeMoveSchema>;

const volumeMoveCookie: CookieCodec<VolumeMove> = cookieCodec(volumeMoveSchema);

/** The cookie of an attachment while its volume is copied to another host: the instance's id, then the move. */
export function toVolumeMoveCookie(instanceId: string, move: VolumeMove): string {
  return `${instanceId} ${volumeMoveCookie.encode(move)}`;
}

export function volumeMoveOf(cookie: string | null): VolumeMove | undefined {
  return volumeMoveCookie.decode(cookie?.slice(cookie.indexOf(' ') + 1) ?? null);
}
