import { Command } from 'commander';
import type { UserRecord } from '../../marketplace/model/people.ts';
import { addUser, changeUser, type UserChanges } from '../../marketplace/teams/users.ts';
import { parseCount, parseMinutes, parseSwitch } from '../parse.ts';
import {
  type Column,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printDone,
  printRecords,
  toFields,
  toJsonTime,
  withList,
  withNames,
  withOutput,
} from '../print-records.ts';
import { auditedHere, onMarketplaceDatabase } from './database.ts';

interface UserFlags extends OutputFlag {
  name?: string;
  allowKeys?: true;
  createLimit?: string;
  minimumRuntime?: string;
  deploymentMail?: string;
  marketingMail?: string;
}

export function usersCommand(): Command {
  const users = new Command('users');
  withSettings(
    onMarketplaceDatabase(
      users.command('create <email>'),
      async (deps, email: string, flags: UserFlags & { team?: string }) => {
        const { team, allowKeys } = flags;
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
        const sentence = `User ${user.email} (${user.id}) is added${where}.`;
        printDone(flags, toFields(user, userColumns), sentence);
      },
    ),
  )
    .description('add a user')
    .option('--allow-keys', 'allow API keys')
    .option(
      '--team <team>',
      'put them into this team, as a member; default: a personal team, created at first use',
    );
  withList(
    onMarketplaceDatabase(users.command('ls'), async ({ store }, flags: ListFlags) =>
      printRecords(await store.read.users.list(), userColumns, flags, 'There is no user.'),
    ),
  ).description('list the users');
  withSettings(
    onMarketplaceDatabase(users.command('set <email>'), async (deps, email: string, flags: UserFlags) => {
      const changes = toChanges(flags);
      const action = { action: 'user.set', subject: email, detail: { ...changes } };
      const user = await auditedHere(deps, action, (within) => changeUser(within, email, changes));
      if (isData(flags)) printData(flags, toFields(user, userColumns));
      else printRecords([user], userColumns, {});
    }),
  ).description('change the settings of a user');
  const allowing = onMarketplaceDatabase(
    users.command('allow-keys <email>'),
    async (deps, email: string, flags: OutputFlag & { no?: true }) => {
      const changes = { mayMakeKeys: flags.no !== true };
      const action = { action: 'user.set', subject: email, detail: changes };
      const user = await auditedHere(deps, action, (within) => changeUser(within, email, changes));
      const sentence = `${user.email} ${user.mayMakeKeys ? 'may have' : 'may not have'} API keys.`;
      printDone(flags, toFields(user, userColumns), sentence);
    },
  );
  withOutput(allowing)
    .description('allow a user to have API keys')
    .option('--no', 'forbid new API keys; existing keys stay valid');
  return users;
}

function withSettings(command: Command): Command {
  return withOutput(command)
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

const userColumns: readonly Column<UserRecord>[] = withNames<UserRecord>(
  [
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
  ],
  'name',
);

function toLimit(createLimit: number | null): number | string {
  if (createLimit === null) return 'default';
  return createLimit < 0 ? 'no limit' : createLimit;
}
