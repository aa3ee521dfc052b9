import type { Command } from 'commander';
import { CHECKS } from '../checks/index.ts';
import type { Requirements } from '../contract/requirements.ts';
import { toHtml } from '../report/html/html.ts';
import { toJunit } from '../report/junit.ts';
import { toJson, toReport } from '../report/model.ts';
import type { Report } from '../report/report.ts';
import { toTerminal } from '../report/terminal/terminal.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { EXIT } from '../verdict/outcome.ts';
import { OutputFile } from './output-file.ts';
import { CommandError, NAME } from './program.ts';
import type { Terminal } from './terminal.ts';

/** The options that write the report to files. */
export interface OutputFlags {
  json?: string;
  junit?: string;
  html?: string;
}

const RENDERERS: Readonly<Record<keyof OutputFlags, (report: Report) => string>> = {
  json: toJson,
  junit: toJunit,
  html: toHtml,
};

/** The output files of the report and the transcript. */
export class Outputs {
  readonly #reports: { render: (report: Report) => string; file: OutputFile }[] = [];
  readonly transcript: OutputFile | undefined;

  /** Opens all files. Throws `CommandError`, and removes all of them, where one cannot be written. */
  constructor(flags: OutputFlags & { transcript?: string }) {
    const opened: OutputFile[] = [];
    const open = (option: string, path: string): OutputFile => {
      const file = new OutputFile(option, path);
      if (opened.some((other) => other.path === file.path))
        throw new CommandError(`${option} ${path} is named twice: give each output its own file`);
      opened.push(file);
      return file;
    };
    try {
      for (const [name, render] of Object.entries(RENDERERS)) {
        const path = flags[name as keyof OutputFlags];
        if (path !== undefined) this.#reports.push({ render, file: open(`--${name}`, path) });
      }
      this.transcript = flags.transcript === undefined ? undefined : open('--transcript', flags.transcript);
    } catch (error) {
      for (const file of opened) file.discard();
      throw error;
    }
  }

  /** Writes the report; returns what could not be written. */
  finish(report: Report): string[] {
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
    const reports = this.#reports.map(({ file }) => file);
    return this.transcript === undefined ? reports : [...reports, this.transcript];
  }
}

export interface Showing {
  records: readonly TranscriptRecord[];
  requirements: Requirements;
  outputs: Outputs;
  terminal: Terminal;
  isVerbose: boolean;
}

/** Judges the records, writes the reports and returns the exit code. Throws `SuiteFault`. */
export function showReport({ records, requirements, outputs, terminal, isVerbose }: Showing): number {
  const judged = judge(records, requirements.rows, CHECKS);
  const report = toReport(records, judged, requirements);
  terminal.out(toTerminal(report, { color: terminal.color, width: terminal.width, verbose: isVerbose }));
  const problems = outputs.finish(report);
  for (const problem of problems) terminal.err(`${NAME}: ${problem}.\n`);
  return exitCodeOf(report, problems);
}

/** A file that could not be written does not hide a worse result. */
function exitCodeOf({ exit_code }: Report, problems: readonly string[]): number {
  const givesWay = exit_code === EXIT.conformant || exit_code === EXIT.incomplete;
  return problems.length > 0 && givesWay ? EXIT.configuration : exit_code;
}

/** Adds the options for report files. */
export function withOutputs(command: Command): Command {
  return command
    .option('--json <file>', 'write the report as JSON')
    .option('--junit <file>', 'write the report as JUnit XML')
    .option('--html <file>', 'write the report as one HTML page');
}
