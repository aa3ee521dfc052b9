import type { Command } from 'commander';
import { orchestratorStores, type StoreDeps } from '../compose/stores/orchestrator.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { onlyLocal, withContext } from './context/contexts.ts';
import { actionOn, type Body, withDatabase } from './database.ts';

/** Loads the configuration of `berth serve`. The flags may be before or after the command's name. */
export function loadFor(command: Command): Config {
  const { config: file, database } = command.optsWithGlobals<{ config?: string; database?: string }>();
  return loadConfig({ file, flags: { database }, env: process.env }).config;
}

/** Runs `body` on the database of `berth serve` with the same flags, even while it runs. */
export function onDatabase<Args extends unknown[]>(
  command: Command,
  body: Body<StoreDeps & { config: Config }, Args>,
): Command {
  const local = actionOn(orchestratorStores, loadFor, body);
  return withContext(withDatabase(command)).action(onlyLocal(local));
}
