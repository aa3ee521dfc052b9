import { Command } from 'commander';
import { importImage } from '../compose/drivers/import-image.ts';
import { createLog } from '../runtime/log.ts';
import { systemClock } from '../runtime/system.ts';
import { printFinding } from './doctor-command.ts';
import { loadFor } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

interface Flags extends OutputFlag {
  platform?: string;
  host?: string;
  replace?: true;
}

/** `berth image`: the base images of platforms whose driver can import them. */
export function imageCommand(): Command {
  return new Command('image').enablePositionalOptions().addCommand(importCommand());
}

function importCommand(): Command {
  return withOutput(new Command('import'))
    .description('check a base image and put it on each host of a platform')
    .argument('<name>', 'the name of the image in the catalog and in platform.images')
    .argument('<file>', 'a qcow2 file of this machine')
    .option('--platform <name>', 'which platform, if there are several')
    .option('--host <name>', 'only this host')
    .option('--replace', 'replace another image of that name, if no disk is based on it')
    .option('--config <file>', 'berth.yaml; see examples/berth.yaml')
    .action(async (name: string, file: string, flags: Flags, command: Command) => {
      const { platform, host, replace = false } = flags;
      const ports = { env: process.env, clock: systemClock, log: createLog('error') };
      const image = { name, file, platform, host, replace };
      for await (const step of importImage(loadFor(command), image, ports)) {
        if (isData(flags)) printData(flags, step);
        else printFinding(step);
        if (step.verdict === 'broken') process.exitCode = 1;
      }
    });
}
