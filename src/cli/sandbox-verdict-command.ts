import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import {
  askVerdict,
  findingText,
  removableOf,
  summaryOf,
  type Verdict,
  type VerdictRequest,
} from '../compose/sandbox/verdict.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { type OutputFlag, printData, withOutput } from './print-records.ts';

interface Flags extends OutputFlag, Omit<VerdictRequest, 'key'> {
  controlKeyFile?: string;
}

/** `berth sandbox verdict`: judges the client of a running sandbox. Exits 1 if a rule fails. */
export function verdictCommand(): Command {
  return withOutput(new Command('verdict'))
    .description(
      'judge a client by its requests to a running sandbox: 0 if no rule of the contract fails, else 1',
    )
    .requiredOption('--control <url>', 'the URL of the sandbox, such as http://127.0.0.1:8099')
    .option('--control-key-file <file>', 'file with the key of the control API; default: BERTH_CONTROL_KEY')
    .option('--account <name>', 'judge only the requests of this account; default: all')
    .option('--baseline <file>', 'a file of accepted failures, in JSON')
    .option('--junit <file>', 'write the verdict as JUnit XML')
    .action(async ({ controlKeyFile, json, ...request }: Flags) => {
      const verdict = await askVerdict({ ...request, key: readKey(controlKeyFile) });
      if (json) printData(verdict);
      else print(verdict);
      if (!verdict.holds) process.exitCode = 1;
    });
}

function readKey(file: string | undefined): string {
  const key = file === undefined ? process.env['BERTH_CONTROL_KEY'] : readText(file);
  if (key === undefined || key.trim() === '')
    throw new Fatal(
      'The key of the control API is missing: give --control-key-file, or set BERTH_CONTROL_KEY. `berth sandbox` prints the key.',
    );
  return key.trim();
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(`--control-key-file ${file} cannot be read: ${(error as Error).message}.`, {
      cause: error,
    });
  }
}

function print(verdict: Verdict): void {
  const rows = verdict.rules.flatMap(({ rule, result, findings, not_tested: why }) => {
    if (findings.length === 0) return [[result === 'not_tested' ? 'not tested' : result, rule, why ?? '']];
    return findings.map((finding) => {
      const { accepted } = finding;
      const text = findingText(finding);
      return accepted === undefined ? ['FAIL', rule, text] : ['accepted', rule, `${text}: ${accepted}`];
    });
  });
  printTable(['RESULT', 'RULE', 'WHY'], rows);
  for (const line of ['', ...removableOf(verdict), summaryOf(verdict)]) printLine(line);
}
