import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ReconcileChanges } from '../../../src/compose/orchestrator/platforms.ts';
import { defaultBehavior, type SimulatorBehavior } from '../../../src/drivers/simulator/options.ts';
import { defaultOptions } from '../../../src/marketplace/model/options.ts';
import { defaultReconcileOptions } from '../../../src/orchestrator/platform/options.ts';

/** What a test build of `berth` uses instead of the defaults. */
export interface Times {
  reconcile?: ReconcileChanges;
  simulator?: Partial<SimulatorBehavior>;
  polling?: Partial<typeof defaultOptions.polling>;
}

/** Of a server that tests wait for. */
export const quickReconcile = { watchIntervalMs: 200, probeIntervalMs: 100 };

const fileBeside = (config: string): string => `${config}.times.json`;

/** Writes the times for servers that run with this configuration. */
export function writeTimes(config: string, times: Times): void {
  writeFileSync(fileBeside(config), JSON.stringify(times));
}

export function readTimes(config: string): Times {
  return JSON.parse(readFileSync(fileBeside(config), 'utf8'));
}

/** Whether a command's configuration has times. */
export function hasTimes(args: readonly string[], cwd = '.'): boolean {
  return existsSync(resolve(cwd, fileBeside(configOf(args))));
}

/** Applies the times of the command's configuration to this process. */
export function useTimes(args: readonly string[]): void {
  if (!hasTimes(args)) return;
  const { reconcile, simulator, polling } = readTimes(configOf(args));
  Object.assign(defaultReconcileOptions, reconcile);
  Object.assign(defaultBehavior, simulator);
  Object.assign(defaultOptions.polling, polling);
}

function configOf(args: readonly string[]): string {
  return args[args.indexOf('--config') + 1] ?? '';
}
