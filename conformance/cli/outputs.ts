import { toHtml } from '../report/html.ts';
import { toJunit } from '../report/junit.ts';
import { toJson } from '../report/model.ts';
import type { Report } from '../report/report.ts';
import { CommandError } from './command-error.ts';
import { OutputFile } from './output-file.ts';

/** The options by which a report is written to files. */
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

/** The files of a report, and that of the transcript. */
export class Outputs {
  readonly #reports: { render: (report: Report) => string; file: OutputFile }[] = [];
  readonly transcript: OutputFile | undefined;

  /** Opens them all. Throws `CommandError` where one cannot be written, and then there is none. */
  constructor(flags: OutputFlags & { transcript?: string }) {
    const opened: OutputFile[] = [];
    const open = (option: string, path: string): OutputFile => {
      const file = new OutputFile(option, path);
      if (opened.some((other) => other.path === file.path))
        throw new CommandError(`${option} ${path} is named twice: give each output a file of its own`);
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

  /** Writes the report, and answers with what could not be written. */
  finish(report: Report): string[] {
    for (const { render, file } of this.#reports) file.write(render(report));
    for (const { file } of this.#reports) file.finish();
    this.transcript?.finish();
    return this.#files.flatMap(({ problem }) => problem ?? []);
  }

  /** There is no report, but what was seen is worth keeping. */
  keepTranscript(): void {
    this.transcript?.finish();
    this.discard();
  }

  /** The run came to nothing. */
  discard(): void {
    for (const file of this.#files) file.discard();
  }

  get #files(): OutputFile[] {
    const reports = this.#reports.map(({ file }) => file);
    return this.transcript === undefined ? reports : [...reports, this.transcript];
  }
}
