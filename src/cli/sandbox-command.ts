import { Command, Option } from 'commander';
import { type ServingSandbox, serveSandbox } from '../compose/sandbox/serve.ts';
import { printLine } from '../runtime/print.ts';
import { withOutput } from './print-records.ts';
import { type SandboxFlags, toOptions } from './sandbox-options.ts';
import { printTry, serveUntilSignal, toAddress } from './serving.ts';

/** `berth sandbox`: providers and a marketplace to test clients against, in memory. */
export function sandboxCommand(): Command {
  return withOutput(new Command('sandbox'))
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <number>', '0 takes any free one', '8099')
    .option('--hosts <names>', 'host names that clients use, besides addresses and localhost: a,b')
    .option(
      '--tls <file>',
      'serve HTTPS, and write the certificate of its CA to this file; the control API is also served over HTTP, at another port',
    )
    .option('--origin <url>', 'origin of the base URLs; default: where it listens')
    .option('--control-key <key>', 'key of the control API; default: drawn at random')
    .option('--providers <letters>', 'which of the providers a to g, such as a,b,g; default a')
    .option('--catalog <file>', 'a catalog of your own, sold by the provider `custom`')
    .option('--seed <text>', 'the same seed gives the same keys, ids, times and faults; default 1')
    .addOption(
      new Option(
        '--clock <kind>',
        '`real` follows the clock, `virtual` is advanced by requests; default real',
      ).choices(['real', 'virtual']),
    )
    .option('--start-at <time>', 'start of virtual time; default 2026-01-01T00:00:00Z')
    .option('--timing <ranges>', 'durations of transitions, such as boot=5s,stop=1s-3s,volumes.attach=1m')
    .option('--marketplace', 'serve the marketplace on top of the providers, at /api')
    .option('--credit-usd <amount>', 'credit of each team of the marketplace; default 10000')
    .addOption(
      new Option('--rate-limits <on|off>', '`off`: no request is answered 429; default on').choices([
        'on',
        'off',
      ]),
    )
    .option('--ssh', 'run a real SSH server for each machine, at ports of 127.0.0.1')
    .addOption(
      new Option(
        '--capacity <kind>',
        '`catalog`: all accounts share the units of the catalog; default unlimited',
      ).choices(['unlimited', 'catalog']),
    )
    .option('--scenario <file>', 'load a scenario file and run its steps')
    .option(
      '--stop-with-stdin',
      'stop when standard input ends, and so with the program that started the sandbox',
    )
    .action(async (flags: SandboxFlags) => {
      const { scenario, tls } = flags;
      const address = { ...toAddress(flags), ...(tls !== undefined && { caFile: tls }) };
      const options = { ...toOptions(flags), ...(scenario !== undefined && { scenario }) };
      const start = () => serveSandbox(options, address);
      await serveUntilSignal(start, flags, { toJson: toReadyLine, welcome: welcome(tls) });
    });
}

function toReadyLine({ origin, controlOrigin, sandbox }: ServingSandbox): object {
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
    control: { base_url: `${controlOrigin}/control`, api_key: controlKey },
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
  (ca: string | undefined) =>
  (serving: ServingSandbox): void => {
    const {
      origin,
      controlOrigin,
      sandbox: { defaultAccount, controlKey },
    } = serving;
    const { providers, marketplace } = defaultAccount;
    printLine(`The sandbox answers at ${origin}; all of it is in memory`);
    for (const [name, { baseUrl, apiKey }] of Object.entries(providers))
      printLine(`  ${name}   ${baseUrl}   API key ${apiKey}`);
    if (marketplace !== undefined)
      printLine(`  marketplace  ${marketplace.baseUrl}   API key ${marketplace.apiKey}`);
    printLine(`  control      ${controlOrigin}/control   API key ${controlKey}`);
    const [first] = Object.values(providers);
    const trusted = ca === undefined ? '' : `--cacert ${ca} `;
    if (first !== undefined)
      printTry(`curl ${trusted}-H 'Authorization: Bearer ${first.apiKey}' ${first.baseUrl}/availability`);
  };
