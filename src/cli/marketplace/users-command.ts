import { Command } from 'commander';
import { addUser, changeUser, type UserChanges } from '../../marketplace/accounts/users.ts';
import type { UserRecord } from '../../marketplace/records/people.ts';
import { toTime } from '../keys-command.ts';
import { printLine, printTable } from '../print.ts';
import { withMarketplaceDatabase, withMarketplaceStore } from './open-marketplace-store.ts';
import { parseCount, parseMinutes, parseSwitch } from './parse-values.ts';

interface UserFlags {
  name?: string;
  allowKeys?: true;
  createLimit?: string;
  minimumRuntime?: string;
  deploymentMail?: string;
  marketingMail?: string;
}

/** `berth marketplace users` */
export function usersCommand(): Command {
  const users = new Command('users').description('users: add and list them, set what is theirs');
  withSettings(users.command('add <email>'))
    .description('add a user')
    .option('--allow-keys', 'let them have API keys')
    .action(async (email: string, flags: UserFlags, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const changes = toChanges(flags);
        const user = await addUser(deps, { email, ...changes, mayMakeKeys: flags.allowKeys === true });
        printLine(`User ${user.email} (${user.id}) is there.`);
      }),
    );
  withMarketplaceDatabase(users.command('list'))
    .description('list the users')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: true }, command: Command) =>
      withMarketplaceStore(command, async ({ store }) => {
        const records = await store.read.users.list();
        if (json) printLine(JSON.stringify(records));
        else printUsers(records);
      }),
    );
  withSettings(users.command('set <email>'))
    .description('change what is set for a user')
    .action(async (email: string, flags: UserFlags, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        printUsers([await changeUser(deps, email, toChanges(flags))]);
      }),
    );
  withMarketplaceDatabase(users.command('allow-keys <email>'))
    .description('let a user have API keys')
    .option('--no', 'do not, from now on; keys that there are stay')
    .action(async (email: string, { no }: { no?: true }, command: Command) =>
      withMarketplaceStore(command, async (deps) => {
        const user = await changeUser(deps, email, { mayMakeKeys: no !== true });
        printLine(`${user.email} ${user.mayMakeKeys ? 'may have' : 'may not have'} API keys.`);
      }),
    );
  return users;
}

function withSettings(command: Command): Command {
  return withMarketplaceDatabase(command)
    .option('--name <name>', 'what they are called')
    .option('--create-limit <count>', 'deployments in 15 minutes: a number, `default` or `none` for no limit')
    .option('--minimum-runtime <minutes>', 'before a terminate: a number or `default`')
    .option('--deployment-mail <on|off>', 'mail when a deployment is ready or failed')
    .option('--marketing-mail <on|off>', 'marketing mail');
}

function toChanges(flags: UserFlags): UserChanges {
  const { name, createLimit, minimumRuntime, deploymentMail, marketingMail } = flags;
  return {
    ...(name !== undefined && { name }),
    ...(createLimit !== undefined && { createLimit: toCreateLimit(createLimit) }),
    ...(minimumRuntime !== undefined && {
      minimumRuntimeMinutes:
        minimumRuntime === 'default' ? null : parseMinutes('--minimum-runtime', minimumRuntime),
    }),
    ...(deploymentMail !== undefined && {
      wantsDeploymentMail: parseSwitch('--deployment-mail', deploymentMail),
    }),
    ...(marketingMail !== undefined && {
      wantsMarketingMail: parseSwitch('--marketing-mail', marketingMail),
    }),
  };
}

function toCreateLimit(text: string): number | null {
  if (text === 'default') return null;
  return text === 'none' ? -1 : parseCount('--create-limit', text);
}

function printUsers(records: readonly UserRecord[]): void {
  printTable(
    ['ID', 'EMAIL', 'NAME', 'KEYS', 'CREATES', 'MINIMUM', 'DEPLOYMENT MAIL', 'MARKETING MAIL', 'CREATED'],
    records.map((user) => [
      ...[user.id, user.email, user.name, user.mayMakeKeys ? 'yes' : 'no'],
      user.createLimit === null ? 'default' : user.createLimit < 0 ? 'no limit' : String(user.createLimit),
      user.minimumRuntimeMinutes === null ? 'default' : `${user.minimumRuntimeMinutes} min`,
      user.wantsDeploymentMail ? 'on' : 'off',
      user.wantsMarketingMail ? 'on' : 'off',
      toTime(user.createdAt),
    ]),
  );
}
