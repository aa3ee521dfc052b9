import { Command, Option } from 'commander';
import { type ServingSandbox, serveSandbox } from '../compose/sandbox/serve.ts';
import { printLine } from '../runtime/print.ts';
import { type OutputFlag, withOutput } from './print-records.ts';
import { recordCommand, replayCommand } from './sandbox-record-command.ts';
import { printTry, serveUntilSignal, toPort } from './serving.ts';

interface SandboxFlags extends OutputFlag {
  host: string;
  port: string;
  providers?: string;
  catalog?: string;
  seed?: string;
  clock?: 'real' | 'virtual';
  marketplace?: true;
  ssh?: true;
  state?: string;
  scenario?: string;
}

/** `berth sandbox`: providers and a marketplace to test clients against, in memory. */
export function sandboxCommand(): Command {
  return withOutput(new Command('sandbox'))
    .enablePositionalOptions()
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <number>', '0 takes any free one', '8099')
    .option('--providers <letters>', 'which of the providers a to g, such as a,b,g; default a')
    .option('--catalog <file>', 'a catalog of your own, sold by the provider `custom`')
    .option('--seed <text>', 'the same seed gives the same keys, ids, times and faults; default 1')
    .addOption(
      new Option(
        '--clock <kind>',
        '`real` follows the clock, `virtual` is advanced by requests; default real',
      ).choices(['real', 'virtual']),
    )
    .option('--marketplace', 'serve the marketplace on top of the providers, at /api')
    .option('--ssh', 'run a real SSH server for each machine, at ports of 127.0.0.1')
    .option('--state <file>', 'save the state in this file and load it at the next start')
    .option('--scenario <file>', 'load a scenario file and run its steps')
    .addCommand(recordCommand())
    .addCommand(replayCommand())
    .action(async ({ host, port, output, ...flags }: SandboxFlags) => {
      const { providers, state, ...given } = flags;
      const options = {
        // A scenario may set another clock.
        ...(given.scenario === undefined && { clock: 'real' as const }),
        ...given,
        ...(providers !== undefined && { providers: providers.split(',') }),
        ...(state !== undefined && { state }),
      };
      const start = () => serveSandbox(options, { host, port: toPort(port) });
      const kept = state === undefined ? 'all of it is in memory' : `its state is kept in ${state}`;
      await serveUntilSignal(start, { output }, { toJson: toReadyLine, welcome: welcome(kept) });
    });
}

function toReadyLine({ origin, sandbox }: ServingSandbox): object {
  const { defaultAccount, seed, clock, controlKey } = sandbox;
  const { providers, marketplace } = defaultAccount;
  const each = Object.entries(providers).map(([name, { baseUrl, apiKey }]) => [
    name,
    { base_url: baseUrl, api_key: apiKey },
  ]);
  return {
    origin,
    seed,
    clock: clock.kind,
    control: { base_url: `${origin}/control`, api_key: controlKey },
    providers: Object.fromEntries(each),
    ...(marketplace !== undefined && {
      marketplace: {
        base_url: marketplace.baseUrl,
        api_key: marketplace.apiKey,
        user_id: marketplace.userId,
        team_id: marketplace.teamId,
      },
    }),
  };
}

const welcome =
  (kept: string) =>
  (serving: ServingSandbox): void => {
    const {
      origin,
      sandbox: { defaultAccount, controlKey },
    } = serving;
    const { providers, marketplace } = defaultAccount;
    printLine(`The sandbox answers at ${origin}; ${kept}`);
    for (const [name, { baseUrl, apiKey }] of Object.entries(providers))
      printLine(`  ${name}   ${baseUrl}   API key ${apiKey}`);
    if (marketplace !== undefined)
      printLine(`  marketplace  ${marketplace.baseUrl}   API key ${marketplace.apiKey}`);
    printLine(`  control      ${origin}/control   API key ${controlKey}`);
    const [first] = Object.values(providers);
    if (first !== undefined)
      printTry(`curl -H 'Authorization: Bearer ${first.apiKey}' ${first.baseUrl}/availability`);
  };
