import { Command } from 'commander';
import { type LazyCommand, loadCommands } from '../lazy-command.ts';
import { printLine } from '../print.ts';
import { ONLY_OWNER, stopOnSignal } from '../stop-on-signal.ts';
import { withMarketplaceDatabase } from './open-marketplace-store.ts';
import type { ServingMarketplace } from './serve-marketplace.ts';

interface MarketplaceServeFlags {
  host?: string;
  port?: string;
  adminHost?: string;
  adminPort?: string;
  database?: string;
  config?: string;
  tlsCert?: string;
  tlsKey?: string;
  allowPrivate?: true;
  json?: true;
}

const commands: readonly LazyCommand[] = [
  {
    name: 'users',
    description: 'users: add and list them, set what is theirs',
    load: async () => (await import('./users-command.ts')).usersCommand(),
  },
  {
    name: 'keys',
    description: 'API keys of users: make, list and revoke them',
    load: async () => (await import('./keys-command.ts')).marketplaceKeysCommand(),
  },
  {
    name: 'teams',
    description: 'teams: make and show them, set who is in them',
    load: async () => (await import('./teams-command.ts')).teamsCommand(),
  },
  {
    name: 'credit',
    description: 'balances: book payments, gifts and corrections',
    load: async () => (await import('./credit-command.ts')).creditCommand(),
  },
  {
    name: 'discounts',
    description: 'discounts of teams: set, list and end them',
    load: async () => (await import('./discounts-command.ts')).discountsCommand(),
  },
  {
    name: 'alerts',
    description: 'who is mailed when a sold-out offer is back in stock',
    load: async () => (await import('./alerts-command.ts')).alertsCommand(),
  },
  {
    name: 'providers',
    description: 'the providers of marketplace.yaml',
    load: async () => (await import('./providers-command.ts')).providersCommand(),
  },
  {
    name: 'mail',
    description: 'what was mailed, and what was not',
    load: async () => (await import('./mail-command.ts')).mailCommand(),
  },
  {
    name: 'losses',
    description: 'what providers deny that they have: how much ended by that, and what is held',
    load: async () => (await import('./losses-command.ts')).marketplaceLossesCommand(),
  },
  {
    name: 'verify-ledger',
    description: 'prove the books: balances are the sums of their entries, each second is billed once',
    load: async () => (await import('./verify-ledger-command.ts')).verifyLedgerCommand(),
  },
  {
    name: 'explain-bill',
    description: 'what was billed for a deployment or a volume, rate by rate',
    load: async () => (await import('./explain-bill-command.ts')).explainBillCommand(),
  },
];

/**
 * `berth marketplace`: serves it, and its commands set what is left to account settings (M: Authentication, 1). Of these
 * the ones are loaded that `argv` names anywhere: options with values may stand before them.
 */
export async function marketplaceCommand(argv: readonly string[]): Promise<Command> {
  const marketplace = withMarketplaceDatabase(new Command('marketplace'))
    // A flag that stands after the name of a command is that command's.
    .enablePositionalOptions()
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', '0 takes any free one; default 8100')
    .option('--admin-host <address>', 'where /metrics listens; default 127.0.0.1')
    .option('--admin-port <number>', '0 takes any free one; default 9081, or any with --port 0')
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--allow-private', 'providers may be at private addresses and speak plain http')
    .option('--json', 'print one line of JSON when ready')
    .action(async ({ config, json, ...flags }: MarketplaceServeFlags) => {
      process.umask(ONLY_OWNER);
      const { serveMarketplace } = await import('./serve-marketplace.ts');
      const serving = await serveMarketplace({ configFile: config, flags, env: process.env });
      stopOnSignal(serving);
      if (json) printLine(JSON.stringify(toReadyLine(serving)));
      else welcome(serving);
    });
  for (const command of await loadCommands(commands, (name) => argv.includes(name)))
    marketplace.addCommand(command);
  return marketplace;
}

function toReadyLine({ baseUrl, adminUrl, providers }: ServingMarketplace): object {
  return { base_url: baseUrl, admin_url: adminUrl, providers };
}

function welcome({ baseUrl, adminUrl, providers, hasDocs }: ServingMarketplace): void {
  printLine(`Berth's marketplace serves ${baseUrl}`);
  printLine(`  providers  ${providers.join(', ')}`);
  if (hasDocs) printLine(`  docs       ${new URL('/docs', baseUrl)}`);
  if (adminUrl !== null) printLine(`  metrics    ${new URL('/metrics', adminUrl)}`);
  printLine(
    '\nA user and their key:\n  berth marketplace users add you@example.com --allow-keys\n  berth marketplace keys create you@example.com',
  );
}
