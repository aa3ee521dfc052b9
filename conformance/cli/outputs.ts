import type { Command } from 'commander';
import { readPrivateKey, signReport } from '../certificate/sign.ts';
import { CHECKS } from '../checks/index.ts';
import type { Requirements } from '../contract/requirements.ts';
import { toBadge } from '../report/badge.ts';
import { toHtml } from '../report/html/html.ts';
import { toJunit } from '../report/junit.ts';
import { toJson, toReport } from '../report/model.ts';
import type { Report } from '../report/report.ts';
import { toTerminal } from '../report/terminal/terminal.ts';
import { whatItProves } from '../report/words.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { EXIT } from '../verdict/outcome.ts';
import { orCommandError } from './keys.ts';
import { OutputFile } from './output-file.ts';
import { CommandError, NAME } from './program.ts';
import { readTextFile } from './report-file.ts';
import type { Terminal } from './terminal.ts';

/** The options that write the report to files. */
export interface OutputFlags {
  json?: string;
  junit?: string;
  html?: string;
  badge?: string;
  sign?: string;
}

const RENDERERS: Readonly<Record<'json' | 'junit' | 'html' | 'badge', (report: Report) => string>> = {
  json: toJson,
  junit: toJunit,
  html: toHtml,
  badge: toBadge,
};

/** The output files of the report and the transcript. */
export class Outputs {
  readonly #reports: { render: (report: Report) => string; file: OutputFile }[] = [];
  readonly transcript: OutputFile | undefined;
  /** The PEM of `--sign`. */
  readonly #signingKey: string | undefined;

  /** Opens all files. If one cannot be written, removes all of them and throws `CommandError`. */
  constructor(flags: OutputFlags & { transcript?: string }) {
    const opened: OutputFile[] = [];
    this.#signingKey = flags.sign === undefined ? undefined : readSigningKey(flags.sign, flags.json);
    const open = (option: string, path: string): OutputFile => {
      const file = new OutputFile(option, path);
      if (opened.some((other) => other.path === file.path))
        throw new CommandError(`${option} ${path} is named twice: give each output its own file`);
      opened.push(file);
      return file;
    };
    try {
      for (const [name, render] of Object.entries(RENDERERS)) {
        const path = flags[name as keyof typeof RENDERERS];
        if (path !== undefined) this.#reports.push({ render, file: open(`--${name}`, path) });
      }
      this.transcript = flags.transcript === undefined ? undefined : open('--transcript', flags.transcript);
    } catch (error) {
      for (const file of opened) file.discard();
      throw error;
    }
  }

  /** Whether the report is signed. */
  get isSigned(): boolean {
    return this.#signingKey !== undefined;
  }

  /** Writes the report, signed if requested. Returns the problems of files that could not be written. */
  finish(unsigned: Report, transcriptSha256: string): string[] {
    const key = this.#signingKey;
    const report = key === undefined ? unsigned : signReport(unsigned, transcriptSha256, key);
    for (const { render, file } of this.#reports) file.write(render(report));
    for (const { file } of this.#reports) file.finish();
    this.transcript?.finish();
    return this.#files.flatMap(({ problem }) => problem ?? []);
  }

  /** Keeps the transcript of a run that ended without a report. */
  keepTranscript(): void {
    this.transcript?.finish();
    this.discard();
  }

  /** Removes all unfinished files. */
  discard(): void {
    for (const file of this.#files) file.discard();
  }

  get #files(): OutputFile[] {
    return [...this.#reports.map(({ file }) => file), ...(this.transcript ? [this.transcript] : [])];
  }
}

export interface Showing {
  records: readonly TranscriptRecord[];
  /** The digest of the written transcript. */
  transcriptSha256: string;
  requirements: Requirements;
  outputs: Outputs;
  terminal: Terminal;
  isVerbose: boolean;
  /** For `judge`: the version of the suite. */
  judgedBy?: string;
}

/** Judges the records, writes the reports and returns the exit code. Throws `SuiteFault`. */
export function showReport({
  records,
  transcriptSha256,
  requirements,
  outputs,
  terminal,
  isVerbose,
  judgedBy,
}: Showing): number {
  const judged = judge(records, requirements.rows, CHECKS);
  const report = toReport(records, judged, requirements, judgedBy);
  terminal.out(toTerminal(report, { color: terminal.color, width: terminal.width, verbose: isVerbose }));
  if (outputs.isSigned) terminal.out(`\nWhat its signature proves: ${whatItProves(report)}.\n`);
  const problems = outputs.finish(report, transcriptSha256);
  for (const problem of problems) terminal.err(`${NAME}: ${problem}.\n`);
  return exitCodeOf(report, problems);
}

/** A file that could not be written does not hide a worse result. */
function exitCodeOf({ exit_code }: Report, problems: readonly string[]): number {
  const givesWay = exit_code === EXIT.conformant || exit_code === EXIT.incomplete;
  return problems.length > 0 && givesWay ? EXIT.configuration : exit_code;
}

/** Reads the key before anything is bought. Throws `CommandError`. */
function readSigningKey(path: string, json: string | undefined): string {
  if (json === undefined) throw new CommandError('--sign signs the report of --json: give that too');
  const pem = readTextFile(path);
  orCommandError(() => readPrivateKey(pem), `--sign ${path}`);
  return pem;
}

/** Adds the options for report files. */
export function withOutputs(command: Command): Command {
  return command
    .option('--json <file>', 'write the report as JSON')
    .option('--junit <file>', 'write the report as JUnit XML')
    .option('--html <file>', 'write the report as one HTML page')
    .option('--badge <file>', 'write the outcome as an SVG image')
    .option('--sign <key.pem>', 'sign the --json report with this Ed25519 private key');
}
