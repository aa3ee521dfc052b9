import { CHECKS } from '../checks/index.ts';
import { toReport } from '../report/model.ts';
import type { Report } from '../report/report.ts';
import { toTerminal } from '../report/terminal.ts';
import type { Requirements } from '../requirements.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { EXIT } from '../verdict/outcome.ts';
import type { Outputs } from './outputs.ts';
import { NAME } from './program.ts';
import type { Terminal } from './terminal.ts';

export interface Showing {
  records: readonly TranscriptRecord[];
  requirements: Requirements;
  outputs: Outputs;
  terminal: Terminal;
  isVerbose: boolean;
}

/** Judges, writes the report wherever it is wanted, and answers with the exit code. Throws `SuiteFault`. */
export function showReport({ records, requirements, outputs, terminal, isVerbose }: Showing): number {
  const judged = judge(records, requirements.rows, CHECKS);
  const report = toReport(records, judged, requirements);
  terminal.out(toTerminal(report, { color: terminal.color, width: terminal.width, verbose: isVerbose }));
  const problems = outputs.finish(report);
  for (const problem of problems) terminal.err(`${NAME}: ${problem}.\n`);
  return exitCodeOf(report, problems);
}

/** What was found stands: a file that could not be written takes nothing back of it. */
function exitCodeOf({ exit_code }: Report, problems: readonly string[]): number {
  const givesWay = exit_code === EXIT.conformant || exit_code === EXIT.incomplete;
  return problems.length > 0 && givesWay ? EXIT.configuration : exit_code;
}
