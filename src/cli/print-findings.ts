import type { Diagnosis } from '../ports/diagnosis.ts';
import { printLine } from '../runtime/print.ts';
import { isData, type OutputFlag, printData } from './print-records.ts';

const marks: Readonly<Record<Diagnosis['verdict'], string>> = {
  ok: 'ok',
  skipped: 'skipped',
  warning: 'WARNING',
  broken: 'BROKEN',
};

const MAX_SHOWN = 600;

/** Prints each finding as it comes, as text or as one line of data, then their numbers. Exits 1 if something is broken. */
export async function printFindings(findings: AsyncIterable<Diagnosis>, flags: OutputFlag): Promise<void> {
  const counts = { ok: 0, skipped: 0, warning: 0, broken: 0 };
  for await (const finding of findings) {
    counts[finding.verdict]++;
    if (isData(flags)) printData(flags, finding);
    else printFinding(finding);
  }
  const notMade = counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`;
  if (!isData(flags))
    printLine(`${counts.ok} ok${notMade}, ${counts.warning} warnings, ${counts.broken} broken.`);
  if (counts.broken > 0) process.exitCode = 1;
}

function printFinding(diagnosis: Diagnosis): void {
  const { platform, subject, verdict, finding, remedy, requirement, consequence, exchanges = [] } = diagnosis;
  const where = platform === undefined ? '' : `${platform}: `;
  printLine(`${marks[verdict].padEnd(8)} ${where}${subject}: ${shorten(finding)}`);
  const details = [
    ['required', requirement],
    ...exchanges.flatMap(({ asked, answered }) => [
      ['asked', asked],
      ['answered', answered],
    ]),
    ['consequence', consequence],
  ];
  for (const [name, text] of details)
    if (text !== undefined) printLine(`         ${`${name}:`.padEnd(12)} ${shorten(text)}`);
  if (remedy !== undefined) printLine(`         → ${remedy}`);
}

/** The first line, without the middle of long strings such as keys. `-o json` prints all of it. */
function shorten(given: string): string {
  const [line = ''] = given.split('\n');
  const text = line.replace(/"((?:[^"\\]|\\.){60})(?:[^"\\]|\\.)+"/g, '"$1…"');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
