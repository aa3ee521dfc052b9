import { z } from 'zod';

const resizeSchema = z.object({
  /** What the volume is to have. */
  sizeGb: z.number().positive(),
  /** What it costs then. */
  priceMicroUsdPerHour: z.int().nonnegative(),
  /** The driver's own note between two calls. */
  driver: z.string().nullable(),
});

/** What the row of work of a resize says in its cookie. */
export type Resize = z.infer<typeof resizeSchema>;

export function toCookie(resize: Resize): string {
  return JSON.stringify(resize);
}

/** Undefined: it was lost with the work that it was about. */
export function fromCookie(cookie: string | null): Resize | undefined {
  if (cookie === null) return undefined;
  try {
    return resizeSchema.safeParse(JSON.parse(cookie)).data;
  } catch {
    return undefined;
  }
}
