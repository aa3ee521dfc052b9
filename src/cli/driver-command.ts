import { Command } from 'commander';
import {
  type CheckReport,
  type DriverTest,
  type DriverTestOptions,
  openDriverTest,
} from '../compose/drivers/driver-test.ts';
import { bundledCatalogFile } from '../config/load.ts';
import { parseCount } from '../operator-kit/parse.ts';
import { Fatal } from '../ports/errors.ts';
import { printError, printLine } from '../runtime/print.ts';
import { onFirstSignal } from '../runtime/signals.ts';
import { remedyOf } from './driver-remedies.ts';
import { loadFor } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

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

const MAX_SHOWN = 600;

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
      try {
        await runTest(test, flags);
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

/** Runs the checks. The first signal ends the current check, which still cleans up. */
async function runTest(test: DriverTest, flags: OutputFlag): Promise<void> {
  const reports: CheckReport[] = [];
  let isInterrupted = false;
  onFirstSignal(() => {
    isInterrupted = true;
    printError('berth: stopping after this check; the check removes what it made.\n');
  });
  if (!isData(flags)) printHead(test);
  for await (const report of test.run()) {
    reports.push(report);
    if (isData(flags)) printData(flags, toJson(report, test.isExec));
    else printReport(report, test.isExec);
    if (isInterrupted) break;
  }
  const leftovers = await test.findLeftovers();
  const count = (outcome: string): number =>
    reports.filter(({ result }) => result.outcome === outcome).length;
  const isGood = count('failed') === 0 && leftovers.length === 0 && !isInterrupted;
  if (isData(flags))
    printData(flags, {
      ok: isGood,
      passed: count('passed'),
      failed: count('failed'),
      untried: count('untried'),
      leftovers,
    });
  else {
    printLine('');
    if (leftovers.length > 0) printLine(`Still there, and to be removed by hand: ${leftovers.join(', ')}`);
    printLine(`${count('passed')} passed, ${count('failed')} failed, ${count('untried')} not tried.`);
  }
  if (!isGood) process.exitCode = 1;
}

function printHead({ driverName, offer, abilities, found }: DriverTest): void {
  const { has, hasNot } = abilities;
  printLine(
    `The driver ${driverName}, with machines of the offer ${offer}. Its capabilities: ${has.join(', ')}.`,
  );
  if (hasNot.length > 0) printLine(`Without ${hasNot.join(', ')}: none of these is requested.`);
  if (found.length > 0)
    printLine(
      `Already there: ${shorten(found.join(', '))}. They take units, and --units counts an empty platform: remove everything named berth-test-….`,
    );
  printLine('');
}

function toJson({ id, title, why, result, exchanges }: CheckReport, isExec: boolean): object {
  return {
    id,
    title,
    ...result,
    ...(result.outcome === 'failed' && { why, remedy: remedyOf(id, result, isExec), exchanges }),
  };
}

function printReport({ id, title, why, result, exchanges }: CheckReport, isExec: boolean): void {
  switch (result.outcome) {
    case 'passed':
      printLine(`ok         ${id}: ${title}`);
      break;
    case 'untried':
      printLine(`not tried  ${id}: ${result.reason}`);
      break;
    case 'failed':
      printLine(`FAILED     ${id}: ${title}`);
      printLine(`  found:       ${shorten(result.problem.split('\n')[0] ?? '')}`);
      for (const { asked, answered } of exchanges) {
        printLine(`  asked:       ${shorten(asked)}`);
        printLine(`  answered:    ${shorten(answered)}`);
      }
      printLine(`  consequence: ${why}`);
      printLine(`  change:      ${remedyOf(id, result, isExec)}`);
  }
}

/** Shortens long strings, such as keys and documents, which obscure the output. --json prints all of it. */
function shorten(given: string): string {
  const text = given.replace(/"((?:[^"\\]|\\.){60})(?:[^"\\]|\\.)+"/g, '"$1…"');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
