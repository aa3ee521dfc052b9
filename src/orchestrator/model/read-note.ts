import { z } from 'zod';
import type { Note, OwnerRef } from './platform-driver.ts';
import { idOf } from './platform-resource.ts';

/** How long a note may be, in bytes: what the platforms' tags and metadata hold. */
export const MAX_NOTE_BYTES = 8 * 1024;

/** Whose a resource is by its note. */
export type NoteReading<T> =
  | { owner: 'ours'; value: T }
  /** Another Berth on the same platform made it. */
  | { owner: 'foreign' }
  /** There is no note, or it is none that this program writes. */
  | { owner: 'unknown' };

const anyNote = z.object({ installation: z.string().min(1) });

/** Reads the note of a listed resource. It comes from outside: nothing of it is believed that `schema` does not hold. */
export function readNote<T extends { id: string }>(
  { ref, note }: { ref: OwnerRef; note?: Note },
  installationId: string,
  schema: z.ZodType<T>,
): NoteReading<T> {
  if (note === undefined || Buffer.byteLength(note) > MAX_NOTE_BYTES) return { owner: 'unknown' };
  const json = parseJson(note);
  const whose = anyNote.safeParse(json);
  if (!whose.success) return { owner: 'unknown' };
  if (whose.data.installation !== installationId) return { owner: 'foreign' };
  const { success, data } = schema.safeParse(json);
  return success && data.id === idOf(ref) ? { owner: 'ours', value: data } : { owner: 'unknown' };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
