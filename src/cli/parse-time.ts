import { Fatal } from './fatal.ts';

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A time from now, such as 30m, 2h or 7d; undefined: the text is none. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,7})([mhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A time from now ("30m", "2h", "7d"), or a time. @throws {Fatal} */
export function parseTime(what: string, text: string, now: number): number {
  const forMs = parseDuration(text);
  const at = forMs === undefined ? Date.parse(text) : now + forMs;
  if (Number.isNaN(at) || at > LAST_MS)
    throw new Fatal(
      `${what} ${text}: give minutes, hours or days such as 30m, 2h or 7d, or a time such as 2030-01-31T00:00:00Z.`,
    );
  return at;
}

/** The last time that RFC 3339 has words for. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** The same, which must be to come. @throws {Fatal} */
export function parseTimeToCome(what: string, text: string, now: number): number {
  const at = parseTime(what, text, now);
  if (at > now) return at;
  throw new Fatal(`${what} ${text}: that is over; give a time to come, such as 30m, 2h or 7d from now.`);
}
