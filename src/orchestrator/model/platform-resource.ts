import { z } from 'zod';
import { parseJson } from '../../contract/parse-json.ts';
import { idOf } from './attempt.ts';
import type { DestroyOrder } from './destroy-order.ts';
import type { Note, OwnerRef } from './platform-driver.ts';

/** `createOpenUntil` of a resource whose create may still be sent, or was sent without a known answer. */
export const CREATE_IS_OPEN = Number.MAX_SAFE_INTEGER;

/** The name of the platform where `platform:` in berth.yaml configures one, and of rows from before they had names. */
export const DEFAULT_PLATFORM = 'default';

/** The columns that an instance and a volume share here. */
export interface PlatformResource {
  /** The name of its newest attempt on the platform. */
  ownerRef: OwnerRef;
  /**
   * The host that was chosen for the newest attempt, or the one that showed the resource last. Null: the platform chooses, and
   * has not shown it.
   */
  host: string | null;
  /** The request to remove it. Null: there is none, so nothing of it is removed. */
  destroyOrder: DestroyOrder | null;
  /** The name of the platform that has it, as the configuration names it. It never changes. */
  platform: string;
  /**
   * The last moment at which a create of this resource may have been answered, in milliseconds since the epoch;
   * {@link CREATE_IS_OPEN}: one may still be sent. A `gone` of the platform proves nothing until `createVisibleWithinMs`
   * after it. Null: the platform has shown the resource, or nothing was made.
   */
  createOpenUntil: number | null;
}

/** How long a note may be, in bytes: what the platforms' tags and metadata hold. */
export const MAX_NOTE_BYTES = 8 * 1024;

/** The owner of a resource, by its note. */
export type NoteReading<T> =
  | { owner: 'ours'; value: T }
  /** Another Berth on the same platform made it, or it is noted as another platform's. */
  | { owner: 'foreign' }
  /** There is no note, or it is none that this program writes. */
  | { owner: 'unknown' };

const anyNote = z.object({ installation: z.string().min(1), platform: z.string().optional() });

/**
 * Reads the note of a listed resource. It comes from outside, so only what `schema` accepts is used. What is noted as
 * that of another configured platform is left to that.
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
  if (!whose.success) return { owner: 'unknown' };
  // From before platforms had names, as such a row is.
  const { installation, platform = DEFAULT_PLATFORM } = whose.data;
  if (installation !== installationId || otherPlatforms.has(platform)) return { owner: 'foreign' };
  const { success, data } = schema.safeParse(json);
  return success && data.id === idOf(ref) ? { owner: 'ours', value: data } : { owner: 'unknown' };
}

const MAX_LENGTH = 500;
/** What almost every text is. Looking takes a tenth of the time that cleaning does. */
const CLEAN = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;
/** C0 and C1 controls, line and paragraph separators, and the marks that turn the direction of a text. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * Cleans a text of a platform or a machine for a row, a reply or a log: printable, well-formed, on one line, and at
 * most 500 characters. (PostgreSQL refuses NUL in a text.)
 */
export function cleanText(text: string): string {
  // A driver may pass on what is no text: that throws below.
  if (typeof text === 'string' && text.length <= MAX_LENGTH && CLEAN.test(text)) return text;
  const clean = text
    .slice(0, 4 * MAX_LENGTH)
    .replace(UNPRINTABLE, ' ')
    .trim();
  const short = clean.length <= MAX_LENGTH ? clean : `${clean.slice(0, MAX_LENGTH - 1)}…`;
  return short.toWellFormed();
}
