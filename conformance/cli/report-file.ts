import { readFileSync } from 'node:fs';
import { parseReport } from '../certificate/read-report.ts';
import type { Report } from '../report/report.ts';
import { systemErrorText } from '../text/wording.ts';
import { CommandError } from './program.ts';

/** Throws `CommandError`. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError(`${path} cannot be read (${systemErrorText(error)})`);
  }
}

/** Reads a report that `--json` wrote. Throws `CommandError`. */
export function readReportFile(path: string): Report {
  const read = parseReport(readTextFile(path));
  if ('report' in read) return read.report;
  throw new CommandError(`${path} is not a report that --json wrote: ${read.problem}`);
}
