import { Command } from 'commander';
import type { UserRecord } from '../../marketplace/model/people.ts';
import { addUser, changeUser, type UserChanges } from '../../marketplace/teams/users.ts';
import { printLine } from '../../runtime/print.ts';
import { parseCount, parseMinutes, parseSwitch } from '../parse.ts';
import { type Column, type JsonFlag, printRecords, toJsonTime, withJson } from '../print-records.ts';
import { auditedHere, onMarketplaceDatabase } from './database.ts';

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
  const users = new Command('users');
  withSettings(
    onMarketplaceDatabase(
      users.command('add <email>'),
      async (deps, email: string, { team, allowKeys, ...flags }: UserFlags & { team?: string }) => {
        const changes = { ...toChanges(flags), mayMakeKeys: allowKeys === true };
        const action = {
          action: 'user.add',
          subject: email,
          detail: { ...changes, ...(team !== undefined && { team }) },
        };
        const user = await auditedHere(deps, action, (within) =>
          addUser(within, { email, ...changes, team }),
        );
        const where = team === undefined ? '' : `, a member of ${team}`;
        printLine(`User ${user.email} (${user.id}) is added${where}.`);
      },
    ),
  )
    .description('add a user')
    .option('--allow-keys', 'let them have API keys')
    .option(
      '--team <team>',
      'put them into this team, as a member; default: a team of their own at first use',
    );
  withJson(
    onMarketplaceDatabase(users.command('list'), async ({ store }, flags: JsonFlag) =>
      printRecords(await store.read.users.list(), userColumns, flags),
    ),
  ).description('list the users');
  withSettings(
    onMarketplaceDatabase(users.command('set <email>'), async (deps, email: string, flags: UserFlags) => {
      const changes = toChanges(flags);
      const action = { action: 'user.set', subject: email, detail: { ...changes } };
      const user = await auditedHere(deps, action, (within) => changeUser(within, email, changes));
      printRecords([user], userColumns, {});
    }),
  ).description('change the settings of a user');
  onMarketplaceDatabase(
    users.command('allow-keys <email>'),
    async (deps, email: string, { no }: { no?: true }) => {
      const changes = { mayMakeKeys: no !== true };
      const action = { action: 'user.set', subject: email, detail: changes };
      const user = await auditedHere(deps, action, (within) => changeUser(within, email, changes));
      printLine(`${user.email} ${user.mayMakeKeys ? 'may have' : 'may not have'} API keys.`);
    },
  )
    .description('let a user have API keys')
    .option('--no', 'do not, from now on; keys that there are stay');
  return users;
}

function withSettings(command: Command): Command {
  return command
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

const userColumns: readonly Column<UserRecord>[] = [
  { head: 'ID', key: 'id', value: ({ id }) => id },
  { head: 'EMAIL', key: 'email', value: ({ email }) => email },
  { head: 'NAME', key: 'name', value: ({ name }) => name },
  { head: 'KEYS', key: 'may_make_keys', value: ({ mayMakeKeys }) => mayMakeKeys },
  {
    head: 'CREATES',
    key: 'create_limit',
    value: ({ createLimit }) => toLimit(createLimit),
    text: ({ createLimit }) => String(toLimit(createLimit)),
  },
  {
    head: 'MINIMUM',
    key: 'minimum_runtime_minutes',
    value: ({ minimumRuntimeMinutes: minutes }) => minutes,
    text: ({ minimumRuntimeMinutes: minutes }) => (minutes === null ? 'default' : `${minutes} min`),
  },
  {
    head: 'DEPLOYMENT MAIL',
    key: 'deployment_mail',
    value: (user) => user.wantsDeploymentMail,
    text: (user) => (user.wantsDeploymentMail ? 'on' : 'off'),
  },
  {
    head: 'MARKETING MAIL',
    key: 'marketing_mail',
    value: (user) => user.wantsMarketingMail,
    text: (user) => (user.wantsMarketingMail ? 'on' : 'off'),
  },
  { head: 'CREATED', key: 'created_at', value: ({ createdAt }) => toJsonTime(createdAt) },
];

function toLimit(createLimit: number | null): number | string {
  if (createLimit === null) return 'default';
  return createLimit < 0 ? 'no limit' : createLimit;
}
