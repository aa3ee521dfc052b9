import { z } from 'zod';

const restartSchema = z.object({
  /** When it was accepted, in milliseconds since the epoch. */
  since: z.int().nonnegative(),
  /** Tells this restart from every other of the machine, for the platform. */
  id: z.string().min(1),
  /** `order`: the platform has not said that it is done · `prove`: it has, and the SSH endpoint is not proved yet. */
  phase: z.enum(['order', 'prove']),
  /** The driver's own note between two calls. */
  driver: z.string().nullable(),
});

/** What the row of work of a restart says in its cookie. */
export type Restart = z.infer<typeof restartSchema>;

export function toCookie(restart: Restart): string {
  return JSON.stringify(restart);
}

/** Undefined: it is no cookie of a restart, or one that was lost with the work that it was about. */
export function fromCookie(cookie: string | null): Restart | undefined {
  if (cookie === null) return undefined;
  try {
    return restartSchema.safeParse(JSON.parse(cookie)).data;
  } catch {
    return undefined;
  }
}
