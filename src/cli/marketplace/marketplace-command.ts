import { Command } from 'commander';
import type { ServingMarketplace } from '../../compose/serve/marketplace.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import { printLine } from '../../runtime/print.ts';
import { withDatabase } from '../database.ts';
import { sameMarketplace } from '../invocation.ts';
import { type LazyCommand, loadCommands } from '../program.ts';
import { adminLines, printFacts, type ServerFlags, serveUntilSignal, withServerFlags } from '../serving.ts';
import { withAllowPrivate } from './database.ts';

/** A command that has only views and actions. */
function noun(name: string, description: string): LazyCommand {
  const load = async () => (await import('./action-commands.ts')).marketplaceActionCommand(name);
  return { name, description, load };
}

const commands: readonly LazyCommand[] = [
  {
    name: 'status',
    description: 'summary of providers, spending teams and mail',
    load: async () => (await import('./status-command.ts')).statusCommand(),
  },
  noun('deployments', 'list and show the deployments of every team'),
  {
    name: 'ledger',
    description: 'totals of the ledger: balances of teams, payments, grants and revenue',
    load: async () => (await import('./books-commands.ts')).ledgerCommand(),
  },
  noun('users', 'add and list users, change their settings'),
  noun('keys', 'create, list and revoke the API keys of users'),
  noun('teams', 'create and show teams, manage their members'),
  noun('credit', 'record payments, grants and balance corrections'),
  noun('discounts', 'set, list and end the discounts of teams'),
  noun('alerts', 'mail users when a sold-out offer is back in stock'),
  {
    name: 'providers',
    description: 'list the providers of marketplace.yaml, call them, and show the health of each',
    load: async () => (await import('./providers-command.ts')).providersCommand(),
  },
  noun('mail', 'list the mails: sent, due and given up; retry one'),
  {
    name: 'operators',
    description: 'create, list and revoke the keys of the admin listener',
    load: async () => (await import('./action-commands.ts')).marketplaceOperatorsCommand(),
  },
  noun('audit', 'actions of operators: who, from where, and the outcome'),
  {
    name: 'losses',
    description: 'resources that providers answer 404 for: how many ended, and which are held',
    load: async () => (await import('./losses-command.ts')).marketplaceLossesCommand(),
  },
  {
    name: 'check-database',
    description: 'check the whole database for damage, also while the marketplace runs',
    load: async () => (await import('./books-commands.ts')).checkMarketplaceCommand(),
  },
  {
    name: 'upgrade',
    description: 'upgrade the database to this version',
    load: async () => (await import('./books-commands.ts')).upgradeMarketplaceCommand(),
  },
  {
    name: 'verify-ledger',
    description: 'check the ledger: balances are the sums of their entries, each second is billed once',
    load: async () => (await import('./books-commands.ts')).verifyLedgerCommand(),
  },
  {
    name: 'explain-bill',
    description: 'show the bill of a deployment or a volume, rate by rate',
    load: async () => (await import('./books-commands.ts')).explainBillCommand(),
  },
];

/**
 * `berth marketplace`: runs the server. Its subcommands manage account settings (M: Authentication, 1). Only
 * subcommands that `isNamed` accepts are loaded.
 */
export async function marketplaceCommand(isNamed: (name: string) => boolean): Promise<Command> {
  const marketplace = withServerFlags(
    withAllowPrivate(withDatabase(new Command('marketplace'), 'marketplace')),
    {
      api: 8100,
      admin: 9081,
    },
  )
    // A flag after a command's name belongs to that command.
    .enablePositionalOptions()
    .action(async ({ config: file, output, ...flags }: ServerFlags & { allowPrivate?: true }) => {
      const start = async () => {
        const { serveMarketplace } = await import('../../compose/serve/marketplace.ts');
        const config = loadMarketplaceConfig({ file, flags, env: process.env });
        return serveMarketplace({ config, env: process.env });
      };
      const welcome = (serving: ServingMarketplace) =>
        printWelcome(serving, { ...flags, ...(file !== undefined && { config: file }) });
      await serveUntilSignal(start, { output }, { toJson: toReadyLine, welcome });
    });
  for (const command of await loadCommands(commands, isNamed)) marketplace.addCommand(command);
  return marketplace;
}

function toReadyLine({ baseUrl, adminUrl, providers }: ServingMarketplace): object {
  return { base_url: baseUrl, admin_url: adminUrl, providers };
}

function printWelcome(
  { baseUrl, providers, ...admin }: ServingMarketplace,
  flags: Pick<ServerFlags, 'config' | 'database'>,
): void {
  printLine(`Berth's marketplace serves ${baseUrl}`);
  printFacts([
    ['providers', providers.join(', ')],
    ['docs', String(new URL('/docs', baseUrl))],
    ...adminLines(admin, sameMarketplace('operators create me', flags)),
  ]);
  printLine('');
  printLine('A user and their key:');
  printLine(`  ${sameMarketplace('users create you@example.com --allow-keys', flags)}`);
  printLine(`  ${sameMarketplace('keys create you@example.com', flags)}`);
}
