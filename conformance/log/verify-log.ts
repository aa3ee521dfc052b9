import { digestOf } from '../certificate/digest.ts';
import { CertificateError } from '../certificate/sign.ts';
import type { Report } from '../report/report.ts';
import { audit } from './audit.ts';
import { type Checkpoint, type Cosigned, cosignatureOf } from './checkpoint.ts';
import { type Entry, mayBeEntryOf, parseEntry, toEntry, tryEntry } from './entry.ts';
import { lockFile } from './lock.ts';
import { type Log, openLog, orSay } from './log.ts';
import type { LogReader } from './log-reader.ts';
import type { NoteKey } from './note.ts';
import { type LogProof, openProof } from './proof.ts';
import { compareWithState, writeState } from './state.ts';

export interface LogVerification {
  logKey: NoteKey;
  /** Each must have cosigned. */
  witnessKeys: readonly NoteKey[];
  /** How old the cosignatures may be: without it, an old view of the log is as good as the newest. */
  freshness?: { maxAgeMs: number; wallMs: number };
  /** The log; absent if only the proof is looked at. */
  reader?: LogReader;
  /** A proof that `--save-proof` wrote. */
  proof?: Buffer;
  /** The file with the last checkpoint of the log that was seen. */
  statePath?: string;
}

export interface InLog {
  proof: LogProof;
  cosigned: Cosigned[];
  /** The checkpoint of the state file, with which the log agrees. */
  earlier?: Checkpoint;
  /** Other entries of the same target that are after it in the log or in time; absent if the log was not read. */
  later?: { index: number; report: Entry['report'] }[];
}

/**
 * Proves that a signed report is in a log.
 * @throws {CertificateError} if it is not proved
 * @throws {LogUnavailable} if the log cannot be read
 */
export async function verifyInLog(report: Report, verification: LogVerification): Promise<InLog> {
  const { logKey, reader, statePath } = verification;
  const entry = toEntry(report);
  const offline = readProof(entry, verification);
  if (reader === undefined) {
    if (offline === undefined) throw new Error('there is neither a log nor a proof');
    return { proof: offline, cosigned: cosignedBy(offline.checkpoint, verification) };
  }
  using _lock = statePath === undefined ? undefined : lockFile(`${statePath}.lock`);
  const log = await openLog(reader, logKey);
  const earlier = statePath === undefined ? undefined : await compareWithState(statePath, log, logKey);
  if (offline !== undefined) await log.proveConsistency(offline.checkpoint);
  const { found, later } = await findEntry(log, entry);
  const now: LogProof = {
    ...found,
    path: await log.proveInclusion(found.index, found.entry),
    checkpoint: log.checkpoint,
  };
  // A proof whose checkpoint was cosigned stays good when the log has grown since.
  const { proof, cosigned } = firstCosigned(offline === undefined ? [now] : [now, offline], verification);
  if (statePath !== undefined) writeState(statePath, log.checkpoint);
  return { proof, cosigned, later, ...(earlier !== undefined && { earlier }) };
}

function readProof(entry: Entry, { proof, logKey }: LogVerification): LogProof | undefined {
  if (proof === undefined) return undefined;
  const opened = orSay('the proof is wrong', () => openProof(proof, logKey));
  if (orSay('the entry of the proof is wrong', () => parseEntry(opened.entry)).digest !== entry.digest)
    throw new CertificateError('the proof is of another report');
  return opened;
}

function cosignedBy(checkpoint: Checkpoint, { logKey, witnessKeys, freshness }: LogVerification): Cosigned[] {
  return witnessKeys.map((key) => {
    if (key.bytes.equals(logKey.bytes))
      throw new CertificateError(
        'the key of the witness is the key of the log, which is no witness of itself',
      );
    const cosigned = cosignatureOf(checkpoint, key);
    const witness = key.name ?? `the witness with the key ${key.bytes.toString('base64')}`;
    if (cosigned !== undefined) {
      if (freshness !== undefined) demandFresh(witness, cosigned, freshness);
      return cosigned;
    }
    throw new CertificateError(
      `${witness} has not cosigned the checkpoint of ${checkpoint.size} entries: it may have seen another one, or not yet this`,
    );
  });
}

/** Clocks may differ by this. */
const AHEAD_MS = 300_000;

function demandFresh(
  witness: string,
  { wallMs }: Cosigned,
  { maxAgeMs, wallMs: now }: NonNullable<LogVerification['freshness']>,
): void {
  const hours = ((now - wallMs) / 3_600_000).toFixed(1);
  if (now - wallMs > maxAgeMs)
    throw new CertificateError(
      `${witness} cosigned it ${hours} hours ago: the log may have entries since that it does not show`,
    );
  if (wallMs - now > AHEAD_MS)
    throw new CertificateError(`${witness} cosigned it at a time that has not come yet`);
}

/** The first proof that is cosigned as demanded. @throws {CertificateError} of the last one if none is */
function firstCosigned(
  [proof, ...others]: readonly [LogProof, ...LogProof[]],
  verification: LogVerification,
): { proof: LogProof; cosigned: Cosigned[] } {
  try {
    return { proof, cosigned: cosignedBy(proof.checkpoint, verification) };
  } catch (error) {
    const [next, ...rest] = others;
    if (next === undefined || !(error instanceof CertificateError)) throw error;
    return firstCosigned([next, ...rest], verification);
  }
}

interface Others {
  found: { index: number; entry: Buffer };
  later: { index: number; report: Entry['report'] }[];
}

/** Reads the whole log for the report, and for others of its target that are after it in the log or in time. */
async function findEntry(log: Log, { report, digest }: Entry): Promise<Others> {
  const target = digestOf(report.base_url);
  const { wanted } = await audit(
    log,
    (bytes) => mayBeEntryOf(bytes, report) || mayBeOfTarget(bytes, report.base_url, target),
  );
  const entries = wanted.flatMap(({ index, bytes }) => {
    const entry = tryEntry(bytes);
    return entry === undefined ? [] : [{ index, entry }];
  });
  const match = entries.find(({ entry }) => entry.digest === digest);
  if (match === undefined)
    throw new CertificateError(
      `the log ${log.checkpoint.origin} has ${log.checkpoint.size} entries, and none is of this report`,
    );
  const later = entries.filter(
    ({ index, entry }) =>
      digestOf(entry.report.base_url) === target &&
      entry.digest !== digest &&
      (index > match.index || entry.report.started_at > report.started_at),
  );
  return {
    found: { index: match.index, entry: match.entry.bytes },
    later: later.map(({ index, entry }) => ({ index, report: entry.report })),
  };
}

/** Fast, and never wrong about an entry that is of the target. A removed name is compared by its digest. */
function mayBeOfTarget(bytes: Buffer, baseUrl: unknown, digest: string): boolean {
  return typeof baseUrl !== 'string' || bytes.includes(JSON.stringify(baseUrl)) || bytes.includes(digest);
}
