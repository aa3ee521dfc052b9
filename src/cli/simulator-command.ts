import { resolve } from 'node:path';
import { Command } from 'commander';
import { type ServingSimulator, serveSimulator } from '../compose/drivers/simulator.ts';
import { loadConfig } from '../config/load.ts';
import { printLine } from '../runtime/print.ts';
import { type OutputFlag, withOutput } from './print-records.ts';
import { serveUntilSignal, toPort } from './serving.ts';

interface SimulatorFlags extends OutputFlag {
  config?: string;
  state: string;
  host: string;
  port?: string;
  platform?: string;
}

/** `berth simulator`: runs the platform of several `berth serve` in a separate process. */
export function simulatorCommand(): Command {
  return withOutput(new Command('simulator'))
    .option('--state <file>', 'the SQLite file of its machines and volumes', '.berth/simulator.db')
    .option('--config <file>', 'berth.yaml; the same as that of the servers')
    .option(
      '--host <address>',
      'where to listen; any address but loopback requires BERTH_SIMULATOR_TOKEN',
      '127.0.0.1',
    )
    .option('--port <number>', '0 takes any free one; default that of platform.address, or 8090')
    .option('--platform <name>', 'which platform of berth.yaml, if there are several')
    .action(async ({ config: file, state, host, port, platform, output }: SimulatorFlags) => {
      const start = async () => {
        const { config } = loadConfig({ file, flags: {}, env: {} });
        return serveSimulator({
          config,
          env: process.env,
          stateFile: resolve(state),
          host,
          platform,
          port: port === undefined ? undefined : toPort(port),
        });
      };
      await serveUntilSignal(
        start,
        { output },
        { toJson: ({ address }) => ({ base_url: address }), welcome },
      );
    });
}

function welcome({ address, stateFile, machines }: ServingSimulator): void {
  const contents =
    machines === null
      ? `with a new state ${stateFile}`
      : `with its state ${stateFile} (machines: ${machines})`;
  printLine(`The simulator answers at ${address}, ${contents}`);
  printLine('');
  printLine('In the berth.yaml of each server:');
  printLine(`  platform: { driver: simulator, address: '${address}' }`);
}
