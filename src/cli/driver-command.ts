import { Command } from 'commander';
import { type DriverTestOptions, openDriverTest } from '../compose/drivers/driver-test.ts';
import { bundledCatalogFile } from '../config/load.ts';
import { parseCount } from '../operator-kit/parse.ts';
import { Fatal } from '../ports/errors.ts';
import { printError } from '../runtime/print.ts';
import { onFirstSignal } from '../runtime/signals.ts';
import { loadFor } from './orchestrator-database.ts';
import { printFindings } from './print-findings.ts';
import { type OutputFlag, withOutput } from './print-records.ts';

interface Flags extends OutputFlag {
  url?: string;
  env: string[];
  config?: string;
  platform?: string;
  catalog?: string;
  offer?: string;
  units?: string;
  patienceS: string;
  timeoutS?: string;
  only: string[];
}

const DEFAULT_TIMEOUT_S = '7';

/**
 * `berth driver test`: checks a driver against Berth's requirements, on the platform that it drives: a program, an HTTP
 * service, or the driver of a platform of berth.yaml.
 */
export function driverCommand(): Command {
  return new Command('driver').enablePositionalOptions().addCommand(testCommand());
}

function testCommand(): Command {
  return withOutput(new Command('test'))
    .description('test what Berth relies on in a driver, and explain each failure')
    .argument('[program]', 'the driver; it is run without a shell')
    .argument('[args...]', 'its arguments')
    .option(
      '--url <address>',
      'the address of a driver, instead of a program; BERTH_DRIVER_TOKEN is its token',
    )
    .option(
      '--env <names>',
      'further environment variables to pass to the program, such as TOKEN,ZONE',
      addNames,
      [],
    )
    .option('--config <file>', 'berth.yaml: tests the driver of its platform, with its catalog')
    .option('--platform <name>', 'which platform of berth.yaml, if there are several')
    .option('--catalog <file>', 'the catalog whose offers it makes; default the bundled one')
    .option('--offer <id>', 'the offer to make machines of; default the first')
    .option('--units <count>', 'how many machines the platform can hold: tries to create one more')
    .option('--patience-s <seconds>', 'how long a step may take, from its first call to its end', '300')
    .option('--timeout-s <seconds>', `how long one request may take; default ${DEFAULT_TIMEOUT_S}`)
    .option('--only <ids>', 'run these checks only, such as notes,destroy', addNames, [])
    .passThroughOptions()
    .action(async (program: string | undefined, args: string[], flags: Flags, command: Command) => {
      const test = await openDriverTest({
        tested: testedBy(program === undefined ? undefined : [program, ...args], flags, command),
        env: process.env,
        offerId: flags.offer,
        units: flags.units === undefined ? undefined : parseCount('--units', flags.units),
        patienceMs: parseCount('--patience-s', flags.patienceS) * 1000,
        only: flags.only,
      });
      let isStopped = false;
      onFirstSignal(() => {
        isStopped = true;
        printError('berth: stopping after this check; the check removes what it made.\n');
      });
      try {
        await printFindings(
          test.run(() => isStopped),
          flags,
        );
      } finally {
        await test.close();
      }
    });
}

/** @throws {Fatal} if the flags do not name one driver */
function testedBy(
  program: readonly string[] | undefined,
  { url, config, platform, catalog, timeoutS, env }: Flags,
  command: Command,
): DriverTestOptions['tested'] {
  if ([program, url, config].filter((named) => named !== undefined).length !== 1)
    throw new Fatal(
      'Name one driver: a program, such as ./my-driver, or --url, or --config with berth.yaml: see `berth driver test --help`.',
    );
  if (config === undefined) {
    if (platform !== undefined) throw new Fatal('--platform is a platform of berth.yaml: add --config.');
    return {
      command: program,
      url,
      environment: env,
      catalogFile: catalog ?? bundledCatalogFile(),
      timeoutMs: parseCount('--timeout-s', timeoutS ?? DEFAULT_TIMEOUT_S) * 1000,
    };
  }
  if (catalog !== undefined || timeoutS !== undefined || env.length > 0)
    throw new Fatal('--catalog, --timeout-s and --env are in berth.yaml: leave them out, or --config.');
  return { config: loadFor(command), platform };
}

/** Collects the names of a flag that can be repeated. It takes one word, so that it cannot take the program. */
const addNames = (names: string, before: readonly string[]): string[] => [...before, ...names.split(',')];
