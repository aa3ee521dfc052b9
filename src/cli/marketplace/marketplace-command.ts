import { Command } from 'commander';
import type { ServingMarketplace } from '../../compose/serve/marketplace.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import { printLine } from '../../runtime/print.ts';
import { backupsInProcess } from '../backup-command.ts';
import { withDatabase } from '../database.ts';
import { sameMarketplace } from '../invocation.ts';
import { type LazyCommands, loadCommands, toLazy } from '../program.ts';
import { adminLines, printFacts, type ServerFlags, serveUntilSignal, withServerFlags } from '../serving.ts';

/** Descriptions of the commands. Those without a function have only views and actions. */
const commands: LazyCommands = {
  status: ['summary of providers, spending teams and mail'],
  deployments: ['list and show the deployments of every team; stop, restart or terminate one'],
  volumes: ['delete a volume of any team'],
  ledger: [
    'totals of the ledger: balances of teams, payments, grants and revenue',
    async () => (await import('./books-commands.ts')).ledgerCommand(),
  ],
  figures: ['figures over time: revenue, margin, burn, launches and their failures, bad debt'],
  users: ['add and list users, change their settings, suspend and restore them'],
  keys: ['create, list and revoke the API keys of users'],
  teams: ['create and show teams, manage their members, suspend and restore them'],
  statements: ['statements of a team, and sums of each provider, for a month'],
  credit: ['record payments, grants and balance corrections'],
  discounts: ['set, list and end the discounts of teams'],
  alerts: ['mail users when a sold-out offer is back in stock'],
  providers: [
    'list the providers of marketplace.yaml, call them, and show the health of each',
    async () => (await import('./providers-command.ts')).providersCommand(),
  ],
  sales: ['pause and resume the sales of a provider, a region or an offer'],
  mail: ['list the mails: sent, due and given up; retry one'],
  operators: ['create, list and revoke the keys of the admin listener'],
  alarms: ['open alarms of all servers, those that ended, and who is told'],
  timeline: ['what happened between two times: alarms, actions, restarts, deployments, mails'],
  audit: ['actions of operators: who, from where, and the outcome'],
  losses: ['resources that providers answer 404 for: which are held, accept them, clean up'],
  backup: [
    'copy the database, also while the marketplace runs',
    async () => (await import('./books-commands.ts')).backupMarketplaceCommand(),
  ],
  'check-database': [
    'check the whole database for damage, also while the marketplace runs',
    async () => (await import('./books-commands.ts')).checkMarketplaceCommand(),
  ],
  upgrade: [
    'upgrade the database to this version',
    async () => (await import('./books-commands.ts')).upgradeMarketplaceCommand(),
  ],
  'verify-ledger': [
    'check the ledger: balances are the sums of their entries, each second is billed once',
    async () => (await import('./books-commands.ts')).verifyLedgerCommand(),
  ],
  'explain-bill': ['show the bill of a deployment or a volume, rate by rate'],
};

/**
 * `berth marketplace`: runs the server. Its subcommands manage account settings (M: Authentication, 1). Only
 * subcommands that `isNamed` accepts are loaded.
 */
export async function marketplaceCommand(isNamed: (name: string) => boolean): Promise<Command> {
  const marketplace = withServerFlags(withDatabase(new Command('marketplace'), 'marketplace'), {
    api: 8100,
    admin: 9081,
  })
    // A flag after a command's name belongs to that command.
    .enablePositionalOptions()
    .action(async ({ config: file, output, ...flags }: ServerFlags) => {
      const start = async () => {
        const { serveMarketplace } = await import('../../compose/serve/marketplace.ts');
        const config = loadMarketplaceConfig({ file, flags, env: process.env });
        const makeBackup = backupsInProcess(['marketplace', 'backup'], config.database);
        return serveMarketplace({ config, env: process.env, makeBackup });
      };
      const welcome = (serving: ServingMarketplace) =>
        printWelcome(serving, { ...flags, ...(file !== undefined && { config: file }) });
      await serveUntilSignal(start, { output }, { toJson: toReadyLine, welcome });
    });
  const load = async (name: string) => (await import('./action-commands.ts')).marketplaceActionCommand(name);
  for (const command of await loadCommands(toLazy(commands, load), isNamed)) marketplace.addCommand(command);
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
    ...adminLines(admin, sameMarketplace('operators create me', flags)),
  ]);
  printLine('');
  printLine('A user and their key:');
  printLine(`  ${sameMarketplace('users create you@example.com --allow-keys', flags)}`);
  printLine(`  ${sameMarketplace('keys create you@example.com', flags)}`);
}
