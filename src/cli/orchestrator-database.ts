import type { Command } from 'commander';
import { orchestratorStores, type StoreDeps } from '../compose/open-store.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { actionOn, type Body, withDatabase } from './database.ts';

/** The configuration that `berth serve` would have; the flags may stand before or after the command's name. */
export function loadFor(command: Command): Config {
  const { config: file, database } = command.optsWithGlobals<{ config?: string; database?: string }>();
  return loadConfig({ file, flags: { database }, env: process.env }).config;
}

/** Runs `body` on the database that `berth serve` with the same flags uses, also while it runs. */
export function onDatabase<Args extends unknown[]>(
  command: Command,
  body: Body<StoreDeps & { config: Config }, Args>,
): Command {
  return withDatabase(command).action(actionOn(orchestratorStores, loadFor, body));
}
