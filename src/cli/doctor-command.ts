import { Command } from 'commander';
import { diagnose } from '../compose/doctor.ts';
import type { DoctorFinding } from '../orchestrator/operate/doctor.ts';
import { createLog } from '../runtime/log.ts';
import { printLine } from '../runtime/print.ts';
import { systemClock } from '../runtime/system.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { type JsonFlag, printJson, withJson } from './print-records.ts';

const marks: Readonly<Record<DoctorFinding['verdict'], string>> = {
  ok: 'ok',
  warning: 'WARNING',
  broken: 'BROKEN',
};

/** `berth doctor`: what `berth serve` with the same flags needs, looked at one by one. Exit status 1: something is broken. */
export function doctorCommand(): Command {
  return withJson(withDatabase(new Command('doctor'))).action(
    async ({ json }: JsonFlag, command: Command) => {
      const config = loadFor(command);
      const counts = { ok: 0, warning: 0, broken: 0 };
      const ports = { env: process.env, clock: systemClock, log: createLog('error') };
      for await (const finding of diagnose(config, ports)) {
        counts[finding.verdict]++;
        if (json) printJson(finding);
        else printFinding(finding);
      }
      if (!json) printLine(`${counts.ok} ok, ${counts.warning} to look at, ${counts.broken} broken.`);
      if (counts.broken > 0) process.exitCode = 1;
    },
  );
}

/** For a person at the terminal. */
export function printFinding({ platform, subject, verdict, finding, remedy }: DoctorFinding): void {
  const where = platform === undefined ? '' : `${platform}: `;
  printLine(`${marks[verdict].padEnd(8)} ${where}${subject}: ${finding}`);
  if (remedy !== undefined) printLine(`         → ${remedy}`);
}
