import type { Command } from 'commander';
import { type MarketplaceStoreDeps, withMarketplaceStore } from '../../compose/open-marketplace-store.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';

interface DatabaseFlags {
  config?: string;
  database?: string;
  allowPrivate?: true;
}

/** What the commands of the marketplace work with. */
export type CommandDeps = MarketplaceStoreDeps & { config: MarketplaceConfig };

/** The two options by which a command finds the database of `berth marketplace`. */
export function withMarketplaceDatabase(command: Command): Command {
  return command
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/marketplace.db')
    .option('--config <file>', 'marketplace.yaml; see marketplace.example.yaml');
}

export function withAllowPrivate(command: Command): Command {
  return command.option('--allow-private', 'providers may be at private addresses and speak plain http');
}

/** The configuration that `berth marketplace` would have; the flags may stand before or after the command's name. */
export function loadMarketplaceFor(command: Command): MarketplaceConfig {
  const { config: file, database, allowPrivate } = command.optsWithGlobals<DatabaseFlags>();
  return loadMarketplaceConfig({ file, flags: { database, allowPrivate }, env: process.env });
}

/** Opens the database that `berth marketplace` with the same flags uses, also while it runs, and closes it after `body`. */
export async function onMarketplaceDatabase<T>(
  command: Command,
  body: (deps: CommandDeps) => Promise<T>,
): Promise<T> {
  const config = loadMarketplaceFor(command);
  return withMarketplaceStore(config.database, (deps) => body({ ...deps, config }));
}
