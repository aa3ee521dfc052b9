import { Command } from 'commander';
import { checkConfig, configNotes } from '../config/check.ts';
import { toLine } from '../config/findings.ts';
import { printLine } from '../runtime/print.ts';

/** `berth check-config`: every finding names file, line and path. */
export function checkConfigCommand(): Command {
  return new Command('check-config')
    .option('--config <file>', 'berth.yaml or marketplace.yaml; without it the bundled catalog is checked')
    .action(({ config }: { config?: string }) => {
      const file = config ?? (process.env['BERTH_CONFIG'] || undefined);
      const findings = checkConfig(file);
      for (const finding of findings) process.stderr.write(`${toLine(finding)}\n`);
      if (findings.length > 0) process.exitCode = 1;
      else {
        for (const note of configNotes(file)) printLine(note);
        printLine(`${file ?? 'the bundled catalog'}: OK, no problems found`);
      }
    });
}
