import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { compare, toComparisonText } from '../../certificate/compare.ts';
import { digestOf, REDACTED } from '../../certificate/digest.ts';
import { CertificateError, readPublicKey, type Verified, verifyReport } from '../../certificate/sign.ts';
import { CHECKS } from '../../checks/index.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import { isObject } from '../../text/json.ts';
import { judge } from '../../verdict/judge.ts';
import { EXIT } from '../../verdict/outcome.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError } from '../program.ts';
import { readReportFile, readTextFile } from '../report-file.ts';
import { readTranscriptFile } from './judge.ts';

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
}

/** `berth conformance verify <report>`: exits 1 if the report differs from the signed one. */
export function verifyCommand({ terminal }: CliParts, finish: Finish): Command {
  return new Command('verify')
    .description('check the signature of a report and, with its transcript, every verdict in it')
    .argument('<report>', 'a report that --json and --sign wrote')
    .option('--key <public.pem>', 'the key that it must be signed with; without it any key will do')
    .option('--transcript <file>', 'the transcript that it was made of')
    .action((path: string, flags: VerifyFlags) => {
      const report = readReportFile(path);
      const trusted =
        flags.key === undefined
          ? undefined
          : orCommandError(() => readPublicKey(readTextFile(flags.key ?? '')));
      try {
        const verified = verifyReport(report, trusted);
        if (flags.transcript !== undefined) verifyTranscript(report, verified, flags.transcript);
        terminal.out(textOf(report, verified, flags));
        finish(EXIT.conformant);
      } catch (error) {
        if (!(error instanceof CertificateError)) throw error;
        terminal.err(`${path} is REFUSED: ${error.message}.\n`);
        finish(EXIT.nonConformant);
      }
    });
}

function orCommandError<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CertificateError ? new CommandError(error.message) : error;
  }
}

/** Checks that the transcript is the signed one and leads to the same verdicts. */
function verifyTranscript(report: ReturnType<typeof readReportFile>, signed: Verified, path: string): void {
  const { records, digest } = readTranscriptFile(path);
  if (digest !== signed.transcriptSha256)
    throw new CertificateError(`${path} is not the transcript that it was made of`);
  const requirements = loadRequirements();
  if (report.requirements_digest !== requirements.digest) return;
  const verdicts = new Map(
    judge(records, requirements.rows, CHECKS).map(({ requirement, verdict }) => [requirement.id, verdict]),
  );
  const wrong = report.checks.find(({ id, verdict }) => verdicts.get(id) !== verdict);
  if (wrong !== undefined)
    throw new CertificateError(
      `the transcript makes ${wrong.id} ${verdicts.get(wrong.id)}, and not ${wrong.verdict}`,
    );
}

function textOf(
  { outcome, level, contract_version }: ReturnType<typeof readReportFile>,
  verified: Verified,
  flags: VerifyFlags,
): string {
  const lines = [
    `The report is what was signed: ${outcome} at level ${level}, contract ${contract_version}.`,
    `Key: ${verified.publicKey}${flags.key === undefined ? ' (not compared with any: --key)' : ', as it must be'}`,
    flags.transcript === undefined
      ? `Transcript: SHA-256 ${verified.transcriptSha256} (not compared: --transcript)`
      : 'Transcript: the one that was signed, and it leads to the same verdicts',
    ...(verified.redacted.length === 0 ? [] : [`Taken out since: ${verified.redacted.join(', ')}`]),
  ];
  return `${lines.join('\n')}\n`;
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
      orCommandError(() => verifyReport(report));
      writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`);
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
