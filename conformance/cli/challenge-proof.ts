import { type Command, InvalidArgumentError } from 'commander';
import { refuseOtherAnswer } from '../certificate/answer.ts';
import { readChallenge } from '../certificate/challenge.ts';
import type { Requirements } from '../contract/requirements.ts';
import { suiteDigest } from '../contract/suite-digest.ts';
import type { Report } from '../report/report.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { publicKeyOf } from './keys.ts';
import { CommandError, refuseWithout } from './program.ts';
import { readTextFile } from './report-file.ts';

/** The flags of `verify` about a challenge. */
export interface VerifyChallengeFlags {
  transcript?: string;
  challenge?: string;
  challengeKey?: string;
  tlsKey?: string;
  suiteDigest?: string;
}

export function withProof(command: Command): Command {
  return command
    .option(
      '--challenge <file>',
      'the challenge that the run must answer; needs --transcript, --challenge-key',
    )
    .option('--challenge-key <public.pem>', 'the key that the challenge must be signed with')
    .option('--tls-key <sha256>', 'the public key that the target must have shown in TLS', digestIn)
    .option('--suite-digest <sha256>', 'the suite that the run must name as its own', digestIn);
}

/** What `verify --challenge` checks. */
export interface ChallengeProof {
  /** Throws `CertificateError` if the transcript is not of a run for the challenge. */
  refuseOther(records: readonly TranscriptRecord[], requirements: Requirements): void;
  /** What was checked, one line each. */
  lines(report: Report): string[];
}

/** Undefined without `--challenge`. Throws `CommandError` if a flag that it needs is missing. */
export function proofOf(flags: VerifyChallengeFlags): ChallengeProof | undefined {
  const { challenge: path, challengeKey, transcript, tlsKey, suiteDigest: suite } = flags;
  if (path === undefined) {
    refuseWithout('--challenge', {
      '--challenge-key': challengeKey,
      '--tls-key': tlsKey,
      '--suite-digest': suite,
    });
    return undefined;
  }
  if (transcript === undefined || challengeKey === undefined)
    throw new CommandError(
      '--challenge needs --transcript, which shows the run, and --challenge-key, whose challenge it must be',
    );
  const text = readTextFile(path);
  const key = publicKeyOf(challengeKey);
  return {
    refuseOther(records, { digest }) {
      refuseOtherAnswer(records, readChallenge(text, key), {
        requirements: digest,
        tlsKey,
        suiteDigest: suite,
      });
    },
    lines: ({ suite_sha256, tls_keys = [] }) => {
      const isThis = suite_sha256 === suiteDigest();
      return [
        'Challenge: the one that the run answered. Names, ids, orders, moments and samples are those that it draws, within its time',
        `TLS key: ${tls_keys.join(', ') || 'none, since the target is not https'}${tlsKey === undefined ? ' (which one it must be was not given: --tls-key)' : ', as it must be'}`,
        `Suite: ${suite_sha256}, ${isThis ? 'the same as here' : 'another than here'}; a changed suite could say so too`,
      ];
    },
  };
}

function digestIn(text: string): string {
  const digest = text.trim().toLowerCase();
  if (/^[0-9a-f]{64}$/.test(digest)) return digest;
  throw new InvalidArgumentError('Give a SHA-256, as 64 hex digits');
}
