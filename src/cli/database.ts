import type { Command } from 'commander';
import { type StoreDeps, withStore } from '../compose/open-store.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';

/** How a command finds the database of `berth serve`. */
export interface DatabaseFlags {
  config?: string;
  database?: string;
}

export function withDatabase(command: Command): Command {
  return command
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/berth.db')
    .option('--config <file>', 'berth.yaml; see berth.example.yaml');
}

/** The configuration that `berth serve` would have with these flags. @throws {ConfigError} */
export function loadFor({ config: file, database }: DatabaseFlags): Config {
  return loadConfig({ file, flags: { database }, env: process.env }).config;
}

/** Opens the database that `berth serve` with the same flags uses, also while it runs, and closes it after `body`. */
export async function onDatabase<T>(
  flags: DatabaseFlags,
  body: (deps: StoreDeps & { config: Config }) => Promise<T>,
): Promise<T> {
  const config = loadFor(flags);
  return withStore(config.database, (deps) => body({ ...deps, config }));
}
