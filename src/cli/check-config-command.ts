import { Command } from 'commander';
import { checkConfig, configNotes } from '../config/check.ts';
import { toLine } from '../config/findings.ts';
import { counted } from '../contract/counted.ts';
import { printError, printLine } from '../runtime/print.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

/** `berth check-config`: prints each finding with its file, line and path. */
export function checkConfigCommand(): Command {
  return withOutput(new Command('check-config'))
    .option('--config <file>', 'berth.yaml or marketplace.yaml; without it the bundled catalog is checked')
    .action((flags: OutputFlag & { config?: string }) => {
      const { config } = flags;
      const file = config ?? (process.env['BERTH_CONFIG'] || undefined);
      const findings = checkConfig(file);
      const notes = findings.length > 0 ? [] : configNotes(file, process.env);
      if (findings.length > 0) process.exitCode = 1;
      if (isData(flags)) return printData(flags, { ok: findings.length === 0, findings, notes });
      for (const finding of findings) printError(`${toLine(finding)}\n`);
      if (findings.length === 0) {
        for (const note of notes) printLine(`note: ${note}`);
        const verdict = notes.length === 0 ? 'no problems found' : `with ${counted(notes.length, 'note')}`;
        printLine(`${file ?? 'the bundled catalog'}: OK, ${verdict}`);
      }
    });
}
