import { z } from 'zod';
import { parseJson } from '../../contract/parse-json.ts';
import { pathsOfUnplainText } from '../../ports/plain-text.ts';
import { idOf } from './attempt.ts';
import type { DestroyOrder } from './destroy-order.ts';
import type { Note, OwnerRef } from './platform-driver.ts';

/** Value of `createOpenUntil` while a create may still be sent, or was sent and its answer is unknown. */
export const CREATE_IS_OPEN = Number.MAX_SAFE_INTEGER;

/** The name of the platform that `platform:` in berth.yaml configures, and of rows that predate platform names. */
export const DEFAULT_PLATFORM = 'default';

/** The columns that instances and volumes share. */
export interface PlatformResource {
  /** The name of the newest attempt on the platform. */
  ownerRef: OwnerRef;
  /**
   * The host chosen for the newest attempt, or the host that last showed the resource. Null if the platform chooses the
   * host and has not shown it yet.
   */
  host: string | null;
  /** The request to remove the resource. Without one (null), nothing of it is removed. */
  destroyOrder: DestroyOrder | null;
  /** The configured name of the platform that has it. It never changes. */
  platform: string;
  /**
   * The last moment at which a create of this resource may have been answered, in milliseconds since the epoch. {@link
   * CREATE_IS_OPEN} means that a create may still be sent. A `gone` proves nothing until `createVisibleWithinMs` after
   * it. Null if the platform has shown the resource, or nothing was made.
   */
  createOpenUntil: number | null;
}

/** The largest size of a note in bytes, limited by the platforms' tags and metadata. */
export const MAX_NOTE_BYTES = 8 * 1024;

/** The owner of a resource according to its note. */
export type NoteReading<T> =
  | { owner: 'ours'; value: T }
  /** Another Berth on the same platform made it, or the note names another platform. */
  | { owner: 'foreign' }
  /** There is no note, or Berth did not write it. */
  | { owner: 'unknown' };

/** Without it, JSON has no NUL and no lone surrogate. */
const ESCAPE = /\\u/;

const anyNote = z.object({ installation: z.string().min(1), platform: z.string().optional() });

/**
 * Reads the note of a listed resource. The note is untrusted input: only data that `schema` accepts is used. A resource
 * whose note names another configured platform belongs to that platform.
 */
export function readNote<T extends { id: string }>(
  { ref, note }: { ref: OwnerRef; note?: Note },
  installationId: string,
  schema: z.ZodType<T>,
  otherPlatforms: ReadonlySet<string> = new Set(),
): NoteReading<T> {
  if (note === undefined || Buffer.byteLength(note) > MAX_NOTE_BYTES) return { owner: 'unknown' };
  const json = parseJson(note);
  const whose = anyNote.safeParse(json);
  if (!whose.success || (ESCAPE.test(note) && pathsOfUnplainText(json).length > 0))
    return { owner: 'unknown' };
  // The note predates platform names. Its platform has the default name, as in old rows.
  const { installation, platform = DEFAULT_PLATFORM } = whose.data;
  if (installation !== installationId || otherPlatforms.has(platform)) return { owner: 'foreign' };
  const { success, data } = schema.safeParse(json);
  return success && data.id === idOf(ref) ? { owner: 'ours', value: data } : { owner: 'unknown' };
}

/**
 * Shortens a note to what says whose the resource is, for an object that holds only a short text, such as a port. Undefined
 * if Berth did not write the note.
 */
export function shortenNote(note: Note): Note | undefined {
  const whose = anyNote.extend({ id: z.string() }).safeParse(parseJson(note));
  return whose.success ? JSON.stringify(whose.data) : undefined;
}

const MAX_LENGTH = 500;
/** Matches nearly every text. This test takes a tenth of the time of cleaning. */
const CLEAN = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;
/** C0 and C1 controls, line and paragraph separators, and marks that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * Cleans a text from a platform or a machine for a row, a reply or a log: printable, well-formed, on one line, at most
 * 500 characters. (PostgreSQL refuses NUL in a text.)
 */
export function cleanText(text: string): string {
  // A driver may pass a value that is not a string: `slice` below then throws.
  if (typeof text === 'string' && text.length <= MAX_LENGTH && CLEAN.test(text)) return text;
  const clean = text
    .slice(0, 4 * MAX_LENGTH)
    .replace(UNPRINTABLE, ' ')
    .trim();
  const short = clean.length <= MAX_LENGTH ? clean : `${clean.slice(0, MAX_LENGTH - 1)}…`;
  return short.toWellFormed();
}
