import { Command } from 'commander';
import {
  type Recorded,
  type ServingRecorder,
  serveRecorder,
  serveReplay,
} from '../compose/sandbox/recorder.ts';
import { printError, printLine } from '../runtime/print.ts';
import { type OutputFlag, withOutput } from './print-records.ts';
import { serveUntilSignal, toAddress } from './serving.ts';

interface Flags extends OutputFlag {
  host: string;
  port: string;
  hosts?: string;
}

function withAddress(command: Command): Command {
  return withOutput(command)
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <number>', '0 takes any free one', '8098')
    .option('--hosts <names>', 'host names that clients use, besides addresses and localhost: a,b');
}

const toJson = ({ baseUrl }: ServingRecorder): object => ({ base_url: baseUrl });

/** `berth sandbox record`: a proxy in front of a real provider. */
export function recordCommand(): Command {
  const command = new Command('record')
    .description(
      'proxy a client to a real provider, check every exchange against the contract, and write a scenario for `berth sandbox replay`, without the credentials that were seen',
    )
    .requiredOption('--target <base_url>', 'the base URL of the provider, such as https://gpu.example/v1')
    .requiredOption('--out <file>', 'the scenario file, written when the proxy stops');
  return withAddress(command).action(
    async ({ target, out, output, ...address }: Flags & { target: string; out: string }) => {
      await serveUntilSignal(
        () => serveRecorder({ target, file: out }, toAddress(address), report),
        { output },
        {
          toJson,
          welcome: ({ baseUrl }) =>
            printLine(`Give your client ${baseUrl} instead of ${target}; Ctrl-C writes ${out}`),
        },
      );
    },
  );
}

/** `berth sandbox replay`: a provider that gives recorded answers. */
export function replayCommand(): Command {
  const command = new Command('replay')
    .description('replay the answers of a provider that `berth sandbox record` recorded; accepts any key')
    .argument('<file>', 'a file written by `berth sandbox record`')
    .option('--loop', 'start again when a request has no answer left');
  return withAddress(command).action(
    async (file: string, { loop, output, ...address }: Flags & { loop?: true }) => {
      await serveUntilSignal(
        () =>
          serveReplay(file, toAddress(address), {
            loop,
            unanswered: (sentence) => printError(`berth: ${sentence}\n`),
          }),
        { output },
        {
          toJson,
          welcome: ({ baseUrl, target, count }) =>
            printLine(`${baseUrl} answers as ${target} did (exchanges: ${count})`),
        },
      );
    },
  );
}

function report({ file, exchanges }: Recorded): void {
  printLine(`${file} has the recording (exchanges: ${exchanges.length})`);
  for (const { request, violations = [] } of exchanges)
    for (const { in: where, path, message } of violations)
      printLine(
        `  ${request.method} ${request.path}: the ${where} breaks the contract: ${path === '' ? message : `${path}: ${message}`}`,
      );
}
