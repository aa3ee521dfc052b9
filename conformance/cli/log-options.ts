import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { readNoteKey } from '../log/keys.ts';
import { folderReader, type LogReader, LogUnavailable } from '../log/log-reader.ts';
import { KEY_TYPE, type KeyType, type NoteKey } from '../log/note.ts';
import { formatProof } from '../log/proof.ts';
import { type InLog, verifyInLog } from '../log/verify-log.ts';
import { webReader } from '../log/web-reader.ts';
import type { Report } from '../report/report.ts';
import { printable } from '../text/printable.ts';
import { systemErrorText } from '../text/wording.ts';
import { orCommandError } from './keys.ts';
import { OutputFile } from './output-file.ts';
import { CommandError, refuseWithout } from './program.ts';
import { readTextFile } from './report-file.ts';

/** The options of `verify` that are about a log. */
export interface LogFlags {
  log?: string;
  logKey?: string;
  witnessKey?: string[];
  witnessWithinH?: number;
  logState?: string;
  proof?: string;
  saveProof?: string;
}

export const LOG_KEY = 'the public key of the log: PEM, or a verifier key, which also fixes its name';

export function withLog(command: Command): Command {
  return command
    .option('--log <folder or URL>', 'prove that the report is in this log')
    .option('--log-key <file>', LOG_KEY)
    .option(
      '--witness-key <file>',
      'demand that the holder of this public key cosigned the log; may be repeated',
      (path: string, others: string[] = []) => [...others, path],
    )
    .option('--witness-within-h <hours>', 'demand that it was cosigned within these hours', toHours)
    .option(
      '--log-state <file>',
      'demand that the log still has what it had at the checkpoint in this file; then update the file',
    )
    .option('--proof <file>', 'a proof that --save-proof wrote: with it the log need not be reachable')
    .option('--save-proof <file>', 'write the proof that the report is in the log');
}

function toHours(text: string): number {
  const hours = Number(text);
  if (!(hours > 0)) throw new InvalidArgumentError('It must be a number of hours.');
  return hours;
}

/** Proves that the report is in the log, and returns what to print. @throws {CertificateError} @throws {CommandError} */
export async function verifyWithLog(report: Report, flags: LogFlags, wall: () => number): Promise<string[]> {
  const { log, logKey, logState, proof, saveProof, witnessKey = [], witnessWithinH } = flags;
  if (log === undefined && proof === undefined) {
    refuseWithout('--log or --proof', {
      '--log-key': logKey,
      '--witness-key': flags.witnessKey,
      '--witness-within-h': witnessWithinH,
      '--log-state': logState,
      '--save-proof': saveProof,
    });
    return [];
  }
  if (logKey === undefined) throw new CommandError('--log-key is missing: it is the public key of the log');
  if (logState !== undefined && log === undefined)
    throw new CommandError('--log-state compares with the log itself: give --log too');
  if (witnessWithinH !== undefined && witnessKey.length === 0)
    throw new CommandError('--witness-within-h is about a witness: give --witness-key too');
  const key = readKeyFile(logKey, KEY_TYPE.ed25519);
  const output = saveProof === undefined ? undefined : new OutputFile('--save-proof', saveProof);
  try {
    const verified = await orUnavailable(() =>
      verifyInLog(report, {
        logKey: key,
        witnessKeys: witnessKey.map((path) => readKeyFile(path, KEY_TYPE.cosignature)),
        ...(witnessWithinH !== undefined && {
          freshness: { maxAgeMs: witnessWithinH * 3_600_000, wallMs: wall() },
        }),
        ...(log !== undefined && { reader: openReader(log) }),
        ...(proof !== undefined && { proof: readBytes(proof) }),
        ...(logState !== undefined && { statePath: logState }),
      }),
    );
    output?.complete(formatProof(verified.proof));
    return toLines(verified, flags, key);
  } finally {
    output?.discard();
  }
}

function toLines(
  { proof, cosigned, earlier, later }: InLog,
  { log, logState }: LogFlags,
  { name }: NoteKey,
): string[] {
  const { index, checkpoint } = proof;
  return [
    `Log: entry ${index} of the ${checkpoint.size} in ${printable(checkpoint.origin, 100)}${log === undefined ? ', by the proof alone' : ''}${name === undefined ? ' (which name it must have was not given: a verifier key has it)' : ''}`,
    ...(logState === undefined
      ? []
      : [
          earlier === undefined
            ? `Log before: not seen before; ${logState} has its checkpoint now`
            : `Log before: it still has its ${earlier.size} earlier entries, as ${logState} had them`,
        ]),
    ...(cosigned.length === 0
      ? ['Witness: none was demanded (--witness-key): the log could show others something else']
      : cosigned.map(
          ({ name, wallMs }) => `Witness: ${printable(name, 100)} cosigned it, ${timeText(wallMs)}`,
        )),
    ...(later ?? []).map(
      ({ index: at, report }) =>
        `LATER REPORT: entry ${at}: ${report.outcome} at level ${printable(report.level, 20)}, ${printable(report.started_at, 40)}, of the same target`,
    ),
  ];
}

/** RFC 3339. */
function timeText(wallMs: number): string {
  const date = new Date(wallMs);
  return Number.isNaN(date.getTime()) ? 'at an invalid time' : date.toISOString();
}

/** Opens a log in a folder or behind a web server. @throws {LogUnavailable} */
export function openReader(place: string): LogReader {
  return isUrl(place) ? webReader(place) : folderReader(place);
}

export const isUrl = (place: string): boolean => /^https?:\/\//i.test(place);

/** Reads a public key. @throws {CommandError} */
export function readKeyFile(path: string, type: KeyType): NoteKey {
  return orCommandError(() => readNoteKey(readTextFile(path), type), path);
}

/** @throws {CommandError} */
export function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new CommandError(`${path} cannot be read (${systemErrorText(error)})`);
  }
}

/** A log that cannot be read or written is a fault of the set-up. @throws {CommandError} */
export async function orUnavailable<T>(work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof LogUnavailable ? new CommandError(error.message) : error;
  }
}
