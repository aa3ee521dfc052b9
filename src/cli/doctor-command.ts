import { Command } from 'commander';
import { diagnose } from '../compose/doctor/doctor.ts';
import { createLog } from '../runtime/log.ts';
import { systemClock } from '../runtime/system.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { printFindings } from './print-findings.ts';
import { type OutputFlag, withOutput } from './print-records.ts';

/** `berth doctor`: checks each prerequisite of `berth serve` with the same flags. Exits 1 if a check failed. */
export function doctorCommand(): Command {
  return withOutput(withDatabase(new Command('doctor'))).action((flags: OutputFlag, command: Command) => {
    const ports = { env: process.env, clock: systemClock, log: createLog('error') };
    return printFindings(diagnose(loadFor(command), ports), flags);
  });
}
