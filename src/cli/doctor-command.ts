import { Command } from 'commander';
import { type DoctorFinding, diagnose } from '../compose/doctor/doctor.ts';
import { createLog } from '../runtime/log.ts';
import { printLine } from '../runtime/print.ts';
import { systemClock } from '../runtime/system.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

const marks: Readonly<Record<DoctorFinding['verdict'], string>> = {
  ok: 'ok',
  warning: 'WARNING',
  broken: 'BROKEN',
};

/** `berth doctor`: checks each prerequisite of `berth serve` with the same flags. Exits 1 if a check failed. */
export function doctorCommand(): Command {
  return withOutput(withDatabase(new Command('doctor'))).action(
    async (flags: OutputFlag, command: Command) => {
      const config = loadFor(command);
      const counts = { ok: 0, warning: 0, broken: 0 };
      const ports = { env: process.env, clock: systemClock, log: createLog('error') };
      for await (const finding of diagnose(config, ports)) {
        counts[finding.verdict]++;
        if (isData(flags)) printData(flags, finding);
        else printFinding(finding);
      }
      if (!isData(flags)) printLine(`${counts.ok} ok, ${counts.warning} warnings, ${counts.broken} broken.`);
      if (counts.broken > 0) process.exitCode = 1;
    },
  );
}

/** Prints a finding for the terminal. */
export function printFinding({ platform, subject, verdict, finding, remedy }: DoctorFinding): void {
  const where = platform === undefined ? '' : `${platform}: `;
  printLine(`${marks[verdict].padEnd(8)} ${where}${subject}: ${finding}`);
  if (remedy !== undefined) printLine(`         → ${remedy}`);
}
