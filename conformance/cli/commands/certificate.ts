import { Command } from 'commander';
import { compare, toComparisonText } from '../../certificate/compare.ts';
import { digestOf, REDACTED, sha256 } from '../../certificate/digest.ts';
import { parseReport } from '../../certificate/read-report.ts';
import { CertificateError, type Signed, verifySignature } from '../../certificate/sign.ts';
import { compareWithRows, compareWithTranscript, NotJudged } from '../../certificate/verify.ts';
import { CHECKS } from '../../checks/index.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import { notAskedIn } from '../../report/features.ts';
import type { Report } from '../../report/report.ts';
import { whatItProves } from '../../report/words.ts';
import { isObject } from '../../text/json.ts';
import { printable } from '../../text/printable.ts';
import type { TranscriptRecord } from '../../transcript/records.ts';
import { readTranscript, TranscriptError } from '../../transcript/transcript.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { orCommandError, publicKeyOf } from '../keys.ts';
import { OutputFile } from '../output-file.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError } from '../program.ts';
import { readReportFile, readTextFile } from '../report-file.ts';
import { readTranscriptText } from './judge.ts';

/** `berth conformance compare <before> <now>`: exits 1 if a check became red. */
export function compareCommand({ terminal }: CliParts, finish: Finish): Command {
  return new Command('compare')
    .description('show what became red, green or slower from one --json report to the next')
    .argument('<before>', 'a report that --json wrote')
    .argument('<now>', 'a later one')
    .option('--json', 'as JSON')
    .action((before: string, now: string, { json }: { json?: true }) => {
      const reports = [readReportFile(before), readReportFile(now)] as const;
      const found = compare(...reports);
      terminal.out(json ? `${JSON.stringify(found, null, 2)}\n` : toComparisonText(...reports, found));
      finish(found.red.length > 0 ? EXIT.nonConformant : EXIT.conformant);
    });
}

interface VerifyFlags {
  key?: string;
  transcript?: string;
  nonce?: string;
}

/** `berth conformance verify <report>`: exits 1 if the report is refused, and 2 if this suite cannot judge it. */
export function verifyCommand({ terminal }: CliParts, finish: Finish): Command {
  return new Command('verify')
    .description('check the signature of a report and, with its transcript, all that the report says')
    .argument('<report>', 'a report that --json and --sign wrote')
    .option('--key <public.pem>', 'the key that it must be signed with; without it any key will do')
    .option('--transcript <file>', 'the transcript that it was made of')
    .option('--nonce <text>', 'the nonce that the run must name')
    .action((path: string, flags: VerifyFlags) => {
      const text = readTextFile(path);
      const trusted = publicKeyOf(flags.key);
      try {
        const report = reportIn(text);
        const signed = verifySignature(report, trusted);
        refuseOtherNonce(report, flags.nonce);
        verifyContent(report, signed, flags.transcript);
        terminal.out(textOf(report, signed, flags));
        finish(EXIT.conformant);
      } catch (error) {
        if (error instanceof CertificateError) {
          terminal.err(`${path} is REFUSED: ${error.message}.\n`);
          finish(EXIT.nonConformant);
        } else if (error instanceof NotJudged) {
          terminal.err(`${path} is NOT JUDGED: ${error.message}.\n`);
          finish(EXIT.incomplete);
        } else throw error;
      }
    });
}

/** The report in a file of `--json`. Throws `CertificateError`. */
function reportIn(text: string): Report {
  const read = parseReport(text);
  if ('problem' in read) throw new CertificateError(read.problem);
  return read.report;
}

function verifyContent(report: Report, { transcriptSha256 }: Signed, path: string | undefined): void {
  const requirements = loadRequirements();
  if (path === undefined) {
    compareWithRows(report, requirements, CHECKS);
    return;
  }
  const text = readTranscriptText(path);
  if (sha256(text) !== transcriptSha256)
    throw new CertificateError(`${path} is not the transcript that it was made of`);
  const records = readSigned(text);
  compareWithTranscript(report, records, requirements, CHECKS);
}

function readSigned(text: string): TranscriptRecord[] {
  try {
    return readTranscript(text, { asWritten: true });
  } catch (error) {
    throw error instanceof TranscriptError
      ? new CertificateError(`in its transcript, ${error.message}`)
      : error;
  }
}

function textOf(
  report: Report,
  { publicKey, transcriptSha256, redacted }: Signed,
  flags: VerifyFlags,
): string {
  const { outcome, level, contract_version, base_url, started_at, judged_by } = report;
  const target = redacted.includes('/base_url') ? 'a target whose name was removed' : base_url;
  const left = notAskedIn(report);
  const lines = [
    `${outcome} at level ${level}, contract ${contract_version}: ${target}, ${started_at}.`,
    ...(left.length === 0 ? [] : [`NOT ASKED: ${left.join(', ')}`]),
    `Signature: good, of ${publicKey}${flags.key === undefined ? ' (which key it must be was not given: --key)' : ', as it must be'}`,
    flags.transcript === undefined
      ? `Transcript: not compared (--transcript). The outcome follows from the rows; whether they are true was not checked (SHA-256 ${transcriptSha256})`
      : 'Transcript: the one that was signed, and it gives this report',
    ...(judged_by === undefined
      ? []
      : ['Made by: `judge`, from a file; whoever had the file could have edited it before']),
    ...(redacted.length === 0 ? [] : [`Removed since: ${redacted.join(', ')}`]),
    ...nonceLines(report, flags),
    `What it proves: ${whatItProves(report)}`,
  ];
  return `${lines.join('\n')}\n`;
}

/** @throws {CertificateError} */
function refuseOtherNonce({ nonce }: Report, required: string | undefined): void {
  if (required === undefined || nonce === required) return;
  throw new CertificateError(
    nonce === undefined
      ? 'its run was made without a nonce'
      : `its run was made for the nonce ${printable(nonce, 200)}`,
  );
}

function nonceLines({ nonce }: Report, { nonce: required }: VerifyFlags): string[] {
  if (nonce === undefined) return [];
  const was = required === undefined ? ' (which it must be was not given: --nonce)' : ', as it must be';
  return [`Nonce: ${printable(nonce, 200)}${was}`];
}

/** `berth conformance redact <report> <path…>`: removes values from a signed report, which stays verifiable. */
export function redactCommand(_parts: CliParts): Command {
  return new Command('redact')
    .description('replace values of a signed report by their digests: its signature stays good')
    .argument('<report>', 'a report that --json and --sign wrote')
    .argument('<path...>', 'JSON pointers, e.g. /base_url /exchanges')
    .requiredOption('--out <file>', 'where to write it')
    .action((path: string, pointers: string[], { out }: { out: string }) => {
      const report: unknown = readReportFile(path);
      for (const pointer of pointers) redactAt(report, pointer);
      orCommandError(() => verifySignature(report));
      new OutputFile('--out', out).complete(`${JSON.stringify(report, null, 2)}\n`);
    });
}

function redactAt(report: unknown, pointer: string): void {
  const names = pointer.split('/').slice(1);
  const last = names.pop();
  const holder = names.reduce<unknown>(
    (value, name) => (isObject(value) || Array.isArray(value) ? value[name as never] : undefined),
    report,
  );
  if (last === undefined || typeof holder !== 'object' || holder === null || !(last in holder))
    throw new CommandError(`there is no ${pointer} in the report`);
  (holder as Record<string, unknown>)[last] = { [REDACTED]: digestOf(holder[last as never]) };
}
