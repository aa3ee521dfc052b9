import { readFileSync } from 'node:fs';
import type { Report } from '../report/report.ts';
import { isObject, parseJson } from '../text/json.ts';
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
  const report = parseJson(readTextFile(path));
  if (
    isObject(report) &&
    report['format'] === 1 &&
    Array.isArray(report['checks']) &&
    report['checks'].every(isRow)
  )
    return report as unknown as Report;
  throw new CommandError(`${path} is no report: name a file that --json wrote`);
}

const isRow = (row: unknown): boolean => isObject(row) && typeof row['id'] === 'string' && 'verdict' in row;
