import { Command } from 'commander';
import { printLine } from '../print.ts';
import { ONLY_OWNER, stopOnSignal } from '../serve-command.ts';
import { alertsCommand } from './alerts-command.ts';
import { creditCommand } from './credit-command.ts';
import { marketplaceDescription } from './description.ts';
import { discountsCommand } from './discounts-command.ts';
import { explainBillCommand } from './explain-bill-command.ts';
import { marketplaceKeysCommand } from './keys-command.ts';
import { mailCommand } from './mail-command.ts';
import { withMarketplaceDatabase } from './open-marketplace-store.ts';
import { providersCommand } from './providers-command.ts';
import { type ServingMarketplace, serveMarketplace } from './serve-marketplace.ts';
import { teamsCommand } from './teams-command.ts';
import { usersCommand } from './users-command.ts';
import { verifyLedgerCommand } from './verify-ledger-command.ts';

interface MarketplaceServeFlags {
  host?: string;
  port?: string;
  database?: string;
  config?: string;
  tlsCert?: string;
  tlsKey?: string;
  allowPrivate?: true;
  json?: true;
}

/** `berth marketplace`: serves it, and its commands set what is left to account settings (M: Authentication, 1). */
export function marketplaceCommand(): Command {
  const marketplace = withMarketplaceDatabase(new Command('marketplace'))
    .description(marketplaceDescription)
    // A flag that stands after the name of a command is that command's.
    .enablePositionalOptions()
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', '0 takes any free one; default 8100')
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--allow-private', 'providers may be at private addresses and speak plain http')
    .option('--json', 'print one line of JSON when ready')
    .action(async ({ config, json, ...flags }: MarketplaceServeFlags) => {
      process.umask(ONLY_OWNER);
      const serving = await serveMarketplace({ configFile: config, flags, env: process.env });
      stopOnSignal(serving);
      if (json) printLine(JSON.stringify({ base_url: serving.baseUrl, providers: serving.providers }));
      else welcome(serving);
    });
  const commands = [usersCommand(), marketplaceKeysCommand(), teamsCommand(), creditCommand()];
  const more = [discountsCommand(), alertsCommand(), providersCommand(), mailCommand()];
  for (const command of [...commands, ...more, verifyLedgerCommand(), explainBillCommand()])
    marketplace.addCommand(command);
  return marketplace;
}

function welcome({ baseUrl, providers }: ServingMarketplace): void {
  printLine(`Berth's marketplace serves ${baseUrl}`);
  printLine(`  providers  ${providers.join(', ')}`);
  printLine(`  docs       ${new URL('/docs', baseUrl)}`);
  printLine(
    '\nA user and their key:\n  berth marketplace users add you@example.com --allow-keys\n  berth marketplace keys create you@example.com',
  );
}
