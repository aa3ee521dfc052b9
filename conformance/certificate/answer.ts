import { type Exchange, includes, type RunRecord, type TranscriptRecord } from '../transcript/records.ts';
import type { ReadChallenge } from './challenge.ts';
import { refuseOtherDraws } from './redraw.ts';
import { CertificateError } from './sign.ts';
import { refuseOtherTimes } from './times.ts';

/** What a verifier requires of a run besides its challenge. */
export interface Required {
  /** SHA-256 of requirements.yaml, hex. */
  requirements: string;
  /** SHA-256 of the target's TLS key, hex; absent: any, but the same all the time. */
  tlsKey?: string | undefined;
  /** The digest of the suite, hex; absent: any. */
  suiteDigest?: string | undefined;
}

/**
 * Checks that a transcript is of a run for this challenge: its level, target, requirements, times and TLS key, and that
 * all that a run draws is what the nonce draws.
 * @throws {CertificateError} if it is not
 */
export function refuseOtherAnswer(
  records: readonly TranscriptRecord[],
  read: ReadChallenge,
  required: Required,
): void {
  const [run] = records;
  if (run?.kind !== 'run') throw new CertificateError('its transcript does not begin with its run');
  refuseOtherRun(run, read, required);
  refuseOtherTimes(run, records, read.challenge);
  const exchanges = records
    .filter((record) => record.kind === 'exchange')
    .toSorted((one, other) => one.n - other.n);
  refuseGaps(records, exchanges);
  refuseOtherTlsKeys(run, exchanges, required);
  refuseOtherDraws(records, read.draws);
}

function refuseOtherRun(
  run: RunRecord,
  { challenge, digest, draws }: ReadChallenge,
  required: Required,
): void {
  if (run.challenge === undefined) throw new CertificateError('its run was made without a challenge');
  if (run.isChained !== true) throw new CertificateError('the lines of its transcript are not a hash chain');
  if (run.challenge !== digest || run.seed !== draws.seed)
    throw new CertificateError('its run was made for another challenge');
  if (!includes(run.level, challenge.level))
    throw new CertificateError(`its run is of level ${run.level}, and the challenge of ${challenge.level}`);
  if (challenge.base_url !== undefined && run.baseUrl !== challenge.base_url)
    throw new CertificateError(
      `its target is ${run.baseUrl}, and the challenge is for ${challenge.base_url}`,
    );
  if (run.requirements !== required.requirements)
    throw new CertificateError('its run was made with other requirements');
  if (required.suiteDigest !== undefined && run.suiteDigest !== required.suiteDigest)
    throw new CertificateError(
      `its suite has the digest ${run.suiteDigest ?? 'of no program'}, and not ${required.suiteDigest}`,
    );
}

/** A run numbers its requests and logins, and sends a request again only after a 429 or without an answer. */
function refuseGaps(records: readonly TranscriptRecord[], exchanges: readonly Exchange[]): void {
  const repeated = exchanges.find(
    ({ superseded, answer }) => superseded && answer !== undefined && answer.status !== 429,
  );
  if (repeated !== undefined)
    throw new CertificateError(
      `its request ${repeated.n} was answered ${repeated.answer?.status}, and left out as one that was sent again`,
    );
  const logins = records.filter((record) => record.kind === 'ssh');
  for (const [what, numbered] of [
    ['request', exchanges],
    ['login', logins],
  ] as const) {
    const wrong = numbered.findIndex(({ n }, index) => n !== index + 1);
    if (wrong !== -1)
      throw new CertificateError(`its transcript has no ${what} ${wrong + 1}, or has it twice`);
  }
}

function refuseOtherTlsKeys(
  { baseUrl }: RunRecord,
  exchanges: readonly Exchange[],
  { tlsKey: required }: Required,
): void {
  const hasTls = new URL(baseUrl).protocol === 'https:';
  if (!hasTls && required !== undefined) throw new CertificateError(`its target ${baseUrl} has no TLS key`);
  let key = required;
  for (const { n, answer, tlsKey } of exchanges) {
    if (answer === undefined && tlsKey === undefined) continue;
    if (hasTls !== (tlsKey !== undefined))
      throw new CertificateError(
        `its request ${n} was answered ${hasTls ? 'without' : 'with'} TLS, and the target is ${baseUrl}`,
      );
    key ??= tlsKey;
    if (tlsKey !== key)
      throw new CertificateError(`its request ${n} was answered with the TLS key ${tlsKey}, and not ${key}`);
  }
}
