import { Command } from 'commander';
import { packageVersion } from '../config/package-root.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth version`. */
export function versionCommand(): Command {
  return withOutput(new Command('version')).action((flags: OutputFlag) => {
    const version = packageVersion();
    printDone(flags, { version, node: process.versions.node }, `berth ${version}`);
  });
}
