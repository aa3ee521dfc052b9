import { Chain } from './chain.ts';
import type { TranscriptRecord } from './records.ts';
import { parseRecord } from './schema.ts';

export interface TranscriptParts {
  /** Removes the run's secrets by value. */
  redact: (record: TranscriptRecord) => TranscriptRecord;
  /** Receives each line, without its newline. */
  sink?: ((line: string) => void) | undefined;
  onRecord?: ((record: TranscriptRecord) => void) | undefined;
}

/** The records of a run, in memory and, if `sink` is given, written out one by one. */
export class Transcript {
  readonly records: TranscriptRecord[] = [];
  readonly #parts: TranscriptParts;
  readonly #chain = new Chain();

  constructor(parts: TranscriptParts) {
    this.#parts = parts;
  }

  add(record: TranscriptRecord): void {
    const clean = this.#parts.redact(record);
    this.records.push(clean);
    this.#parts.sink?.(this.#chain.lineOf(clean));
    this.#parts.onRecord?.(clean);
  }
}

/** A transcript that cannot be judged; the message names the line. */
export class TranscriptError extends Error {
  override readonly name = 'TranscriptError';
}

/**
 * Reads a transcript file. A last line that a crash cut off is ignored; any other fault throws `TranscriptError`, also a
 * line whose link does not follow from the lines before it. Transcripts of earlier versions have no links.
 * `asWritten` also refuses a line that the suite would have written otherwise: with other spaces or escapes, or with two
 * fields of one name.
 */
export function readTranscript(text: string, { asWritten = false } = {}): TranscriptRecord[] {
  const lines = text.split('\n');
  const isCutOff = lines.at(-1) !== '';
  const records: TranscriptRecord[] = [];
  const chain = new Chain();
  for (const [index, line] of lines.entries()) {
    if (line === '') continue;
    const parsed = parse(line, chain, asWritten);
    if ('record' in parsed) records.push(inItsPlace(parsed.record, records, index + 1));
    else if (!isCutOff || index < lines.length - 1 || records.length === 0)
      throw new TranscriptError(`line ${index + 1} is not a record of a transcript (${parsed.problem})`);
  }
  if (records.length === 0) throw new TranscriptError('it is empty');
  return records;
}

function inItsPlace(
  record: TranscriptRecord,
  before: readonly TranscriptRecord[],
  line: number,
): TranscriptRecord {
  if (before.length === 0 && record.kind !== 'run')
    throw new TranscriptError(`line ${line} is not the \`run\` record with which a transcript begins`);
  if (before.length > 0 && record.kind === 'run')
    throw new TranscriptError(`line ${line} begins another run: give one transcript at a time`);
  if (before.at(-1)?.kind === 'end')
    throw new TranscriptError(`line ${line} comes after the \`end\` record, the last of a transcript`);
  return record;
}

function parse(line: string, chain: Chain, asWritten: boolean): ReturnType<typeof parseRecord> {
  try {
    const value: unknown = JSON.parse(line);
    if (asWritten && JSON.stringify(value) !== line) return { problem: 'the suite does not write it so' };
    const parsed = parseRecord(value);
    if ('record' in parsed && !chain.accepts(parsed.record, value))
      return {
        problem: 'its link does not follow from the lines before: a line was changed, added or removed',
      };
    return parsed;
  } catch {
    return { problem: 'it is not JSON' };
  }
}

/** A fault of the suite itself, such as a check that threw. It says nothing about the target. */
export class SuiteFault extends Error {
  override readonly name = 'SuiteFault';
}
