import { readFileSync, statSync } from 'node:fs';
import { reasonOf } from '../doctor/reason.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { readTranscript, TranscriptError } from '../transcript/transcript.ts';
import { CommandError } from './command-error.ts';

/** A longer one is no text that Node.js can hold. */
const MAX_BYTES = 500_000_000;

/** The records of a file, or `CommandError` with what is wrong with it. */
export function readTranscriptFile(path: string): TranscriptRecord[] {
  try {
    const stat = statSync(path);
    if (stat.isDirectory()) throw new CommandError(`${path} is a folder: name the file of --transcript`);
    if (stat.size > MAX_BYTES) throw new CommandError(`${path} is larger than ${MAX_BYTES} bytes`);
    return readTranscript(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (error instanceof TranscriptError)
      throw new CommandError(`${path} cannot be judged: ${error.message}`);
    throw new CommandError(`${path} cannot be read (${reasonOf(error)})`);
  }
}
