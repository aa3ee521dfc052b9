import type { TranscriptRecord } from './records.ts';

export interface TranscriptParts {
  /** Takes the run's secrets out, by value. */
  redact: (record: TranscriptRecord) => TranscriptRecord;
  /** Takes one line without its newline. */
  sink?: ((line: string) => void) | undefined;
  onRecord?: ((record: TranscriptRecord) => void) | undefined;
}

/** The records of a run, in memory and, where `sink` is given, written out as each comes. */
export class Transcript {
  readonly records: TranscriptRecord[] = [];
  readonly #parts: TranscriptParts;

  constructor(parts: TranscriptParts) {
    this.#parts = parts;
  }

  add(record: TranscriptRecord): void {
    const clean = this.#parts.redact(record);
    this.records.push(clean);
    this.#parts.sink?.(JSON.stringify(clean));
    this.#parts.onRecord?.(clean);
  }
}

/** A transcript that cannot be judged, with the line that is wrong. */
export class TranscriptError extends Error {
  override readonly name = 'TranscriptError';
}

const KINDS = new Set(['run', 'exchange', 'ssh', 'skipped', 'resource', 'end']);

/** The records of a transcript file. A last line that a crash cut off is left out; any other fault is an error. */
export function readTranscript(text: string): TranscriptRecord[] {
  const lines = text.split('\n');
  const isCutOff = lines.at(-1) !== '';
  const records = lines.flatMap((line, index) => {
    if (line === '') return [];
    const record = parse(line);
    if (record !== undefined) return [record];
    if (isCutOff && index === lines.length - 1) return [];
    throw new TranscriptError(`line ${index + 1} is not a record of a transcript`);
  });
  const [first] = records;
  if (first?.kind !== 'run')
    throw new TranscriptError('line 1 is not the `run` record with which a transcript begins');
  if (first.format !== 1)
    throw new TranscriptError(`it has format ${String(first.format)}, and this suite reads format 1`);
  return records;
}

function parse(line: string): TranscriptRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined;
    return KINDS.has(String(value.kind)) ? (value as TranscriptRecord) : undefined;
  } catch {
    return undefined;
  }
}
