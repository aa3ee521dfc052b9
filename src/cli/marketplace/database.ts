import type { Command } from 'commander';
import { type MarketplaceStoreDeps, marketplaceStores } from '../../compose/stores/marketplace.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { onlyLocal, withContext } from '../context/contexts.ts';
import { actionOn, type Body, withDatabase } from '../database.ts';

export type CommandDeps = MarketplaceStoreDeps & { config: MarketplaceConfig };

/** Loads the configuration of `berth marketplace`. The flags may be before or after the command's name. */
export function loadMarketplaceFor(command: Command): MarketplaceConfig {
  const { config: file, database } = command.optsWithGlobals<{ config?: string; database?: string }>();
  return loadMarketplaceConfig({ file, flags: { database }, env: process.env });
}

/** Runs `body` on the database of `berth marketplace` with the same flags, even while it runs. */
export function onMarketplaceDatabase<Args extends unknown[]>(
  command: Command,
  body: Body<CommandDeps, Args>,
): Command {
  const local = actionOn(marketplaceStores, loadMarketplaceFor, body);
  return withContext(withDatabase(command, 'marketplace')).action(onlyLocal(local));
}
