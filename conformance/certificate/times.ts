import type { Exchange, RunRecord, SshRecord, TranscriptRecord } from '../transcript/records.ts';
import type { Challenge } from './challenge.ts';
import { CertificateError } from './sign.ts';

/** The most that the wall clock may differ from the clock of the run. */
const MOST_DRIFT_MS = 10_000;

/**
 * Checks that a run began and ended within the time of the challenge, and that its times never go backwards.
 * @throws {CertificateError} if not
 */
export function refuseOtherTimes(
  { startedAt }: RunRecord,
  records: readonly TranscriptRecord[],
  { issued_at, expires_at }: Pick<Challenge, 'issued_at' | 'expires_at'>,
): void {
  const startMs = Date.parse(startedAt);
  // A text that is not a time parses to NaN, and fails each of these comparisons.
  if (!(startMs >= Date.parse(issued_at)))
    throw new CertificateError(
      `its run began at ${startedAt}, before the challenge was issued at ${issued_at}`,
    );
  const endMs = startMs + records.reduce((last, record) => Math.max(last, endOf(record) ?? 0), 0);
  if (!(endMs <= Date.parse(expires_at)))
    throw new CertificateError(
      `its run ended ${Math.round(endMs - startMs)} ms after ${startedAt}, and the challenge expired at ${expires_at}`,
    );
  refuseBackwards(records);
  for (const record of records) if (record.kind === 'exchange') refuseDrift(record, startedAt);
}

/** Records are in the order in which they ended, and requests are numbered in the order in which they were sent. */
function refuseBackwards(records: readonly TranscriptRecord[]): void {
  let lastSent = 0;
  for (const record of records) {
    // A superseded request is recorded late, after the wait before it was sent again.
    if (record.kind === 'exchange' && record.superseded) continue;
    const end = endOf(record) ?? lastSent;
    const sent = isTimed(record) ? record.sentAt : 0;
    if (end < Math.max(lastSent, sent))
      throw new CertificateError(`its times go backwards: a record of kind ${record.kind} ends at ${end} ms`);
    lastSent = Math.max(lastSent, sent);
  }
  const byNumber = records
    .filter((record) => record.kind === 'exchange')
    .toSorted((one, other) => one.n - other.n);
  for (const [index, { n, sentAt }] of byNumber.entries())
    if (sentAt < (byNumber[index - 1]?.sentAt ?? 0))
      throw new CertificateError(`its times go backwards: request ${n} was sent before the one before it`);
}

function refuseDrift({ n, wall, sentAt }: Exchange, startedAt: string): void {
  if (!(Math.abs(Date.parse(wall) - Date.parse(startedAt) - sentAt) <= MOST_DRIFT_MS))
    throw new CertificateError(
      `its request ${n} shows the time ${wall}, which is not ${Math.round(sentAt)} ms after ${startedAt}`,
    );
}

/** When the record ended, in milliseconds since the start of the run. */
function endOf(record: TranscriptRecord): number | undefined {
  if (isTimed(record)) return record.endedAt;
  return record.kind === 'resource' || record.kind === 'end' ? record.at : undefined;
}

function isTimed(record: TranscriptRecord): record is Exchange | SshRecord {
  return record.kind === 'exchange' || record.kind === 'ssh';
}
