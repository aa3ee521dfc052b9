import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { defineAction, defineView, type Flag } from '../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../operator-kit/views/values.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { ApiKeyRecord, UserRecord } from '../model/people.ts';
import type { Store } from '../model/store.ts';
import * as keys from '../teams/keys.ts';
import * as users from '../teams/users.ts';

/** What the actions on people and teams need. */
export interface PeopleDeps {
  store: Store;
  clock: Clock;
  random: Random;
}

export const userField = z.string().meta({ description: 'The e-mail address or the id of a user.' });
export const teamField = z.string().meta({ description: 'The slug or the id of a team.' });

const settingFields = {
  name: z.string().optional(),
  allow_keys: z.boolean().optional().meta({ description: 'Whether the user may have API keys.' }),
  create_limit: z
    .int()
    .nullable()
    .optional()
    .meta({ description: 'Deployments in 15 minutes. null: the default; -1: no limit.' }),
  minimum_runtime_minutes: z
    .number()
    .nullable()
    .optional()
    .meta({ description: 'Minimum runtime before a terminate. null: the default.' }),
  deployment_mail: z
    .boolean()
    .optional()
    .meta({ description: 'Whether the user gets a mail when a deployment is ready or failed.' }),
  marketing_mail: z.boolean().optional(),
};
type Settings = z.output<z.ZodObject<typeof settingFields>>;

function toChanges({
  name,
  allow_keys: mayMakeKeys,
  create_limit: createLimit,
  minimum_runtime_minutes: minimumRuntimeMinutes,
  deployment_mail: wantsDeploymentMail,
  marketing_mail: wantsMarketingMail,
}: Settings): users.UserChanges {
  const all = {
    name,
    mayMakeKeys,
    createLimit,
    minimumRuntimeMinutes,
    wantsDeploymentMail,
    wantsMarketingMail,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const userSchema = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    allow_keys: z.boolean(),
    create_limit: z.int().nullable(),
    minimum_runtime_minutes: z.number().nullable(),
    deployment_mail: z.boolean(),
    marketing_mail: z.boolean(),
    suspended: z.string().nullable().meta({ description: 'The reason; null: not suspended.' }),
    created_at: timestampSchema,
  })
  .meta({ id: 'User' });
type User = z.output<typeof userSchema>;

function toUser(user: UserRecord): User {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    allow_keys: user.mayMakeKeys,
    create_limit: user.createLimit,
    minimum_runtime_minutes: user.minimumRuntimeMinutes,
    deployment_mail: user.wantsDeploymentMail,
    marketing_mail: user.wantsMarketingMail,
    suspended: user.suspension?.reason ?? null,
    created_at: toTime(user.createdAt),
  };
}

const words = { on: true, off: false };
const settingFlags: Readonly<Record<string, Flag>> = {
  name: ['--name <name>', 'what they are called'],
  create_limit: [
    '--create-limit <count>',
    'deployments in 15 minutes: a number, `default` or `none` for no limit',
    { words: { default: null, none: -1 } },
  ],
  minimum_runtime_minutes: [
    '--minimum-runtime <minutes>',
    'before a terminate: a number or `default`',
    { words: { default: null } },
  ],
  deployment_mail: ['--deployment-mail <on|off>', 'mail when a deployment is ready or failed', { words }],
  marketing_mail: ['--marketing-mail <on|off>', 'marketing mail', { words }],
};

export const listUsers = defineView({
  name: 'listUsers',
  tag: 'People',
  path: '/users',
  summary: 'The users',
  description: 'Oldest first.',
  reply: ['The users.', z.object({ users: z.array(userSchema) })],
  read: async ({ store: { read } }: PeopleDeps) => ({ users: (await read.users.list()).map(toUser) }),
  commands: [
    {
      name: 'users ls',
      description: 'list the users',
      list: {},
    },
  ],
  list: {
    rows: 'users',
    title: 'Users',
    none: 'There is no user.',
    columns: [
      { field: 'id', isWide: true },
      'email',
      { field: 'name', under: 'email' },
      'allow_keys',
      {
        field: 'create_limit',
        text: ({ create_limit: limit }) => (limit === null ? 'default' : limit < 0 ? 'no limit' : limit),
      },
      'minimum_runtime_minutes',
      'deployment_mail',
      'marketing_mail',
      'suspended',
      'created_at',
    ],
  },
});

export const createUser = defineAction({
  name: 'createUser',
  tag: 'People',
  path: '/users',
  summary: 'Add a user',
  description: 'The user has no key yet. Without a team, the first use creates a personal one.',
  input: { email: z.string(), team: teamField.optional(), ...settingFields },
  example: { email: 'kim@example.com', allow_keys: true },
  status: 201,
  errors: ['not_found'],
  reply: ['The user.', userSchema],
  audit: ({ email, team, ...settings }) => ({
    action: 'user.add',
    subject: email,
    detail: { ...toChanges(settings), ...(team !== undefined && { team }) },
  }),
  form: { title: () => 'Add a user', button: 'Add', page: () => '/console/users', beside: 'listUsers' },
  run: async (deps: PeopleDeps, { email, team, ...settings }) =>
    toUser(await users.addUser(deps, { email, team, ...toChanges(settings) })),
  commands: [
    {
      name: 'users create',
      description: 'add a user',
      args: { email: ['<email>'] },
      flags: {
        ...settingFlags,
        allow_keys: ['--allow-keys', 'allow API keys'],
        team: [
          '--team <team>',
          'put them into this team, as a member; default: a personal team, created at first use',
        ],
      },
      toText: ({ id, email }, { team }) => [
        `User ${email} (${id}) is added${team === undefined ? '' : `, a member of ${team}`}.`,
      ],
    },
  ],
});

export const changeUser = defineAction({
  name: 'changeUser',
  tag: 'People',
  path: '/users/{user}',
  summary: 'Change the settings of a user',
  description: 'Only the given settings change.',
  input: { user: userField, ...settingFields },
  check: {
    isValid: ({ user: _user, ...settings }) => Object.values(settings).some((value) => value !== undefined),
    path: [],
    error: `expected one of ${Object.keys(settingFields).join(', ')}`,
  },
  example: { deployment_mail: true },
  errors: ['not_found'],
  reply: ['The user.', userSchema],
  audit: ({ user, ...settings }) => ({ action: 'user.set', subject: user, detail: toChanges(settings) }),
  run: async (deps: PeopleDeps, { user, ...settings }) =>
    toUser(await users.changeUser(deps, user, toChanges(settings))),
  commands: [
    {
      name: 'users set',
      description: 'change the settings of a user',
      args: { user: ['<email>'] },
      flags: settingFlags,
    },
    {
      name: 'users allow-keys',
      description: 'allow a user to have API keys',
      args: { user: ['<email>'] },
      flags: { allow_keys: ['--no', 'forbid new API keys; existing keys stay valid', { value: false }] },
      fixed: { allow_keys: true },
      toText: ({ email, allow_keys: isAllowed }) => [
        `${email} ${isAllowed ? 'may have' : 'may not have'} API keys.`,
      ],
    },
  ],
});

const keySchema = z
  .object({
    id: z.string(),
    user: z.string(),
    key: z.string().meta({ description: 'Its beginning and its end.' }),
    label: z.string().nullable(),
    state: z.enum(['valid', 'revoked', 'expired']),
    created_at: timestampSchema,
    expires_at: timeOrNullSchema,
    last_used_at: timeOrNullSchema,
  })
  .meta({ id: 'UserKey' });
type Key = z.output<typeof keySchema>;

export const listKeys = defineView({
  name: 'listKeys',
  tag: 'People',
  path: '/keys',
  summary: 'Keys of users',
  description: 'Of one user, or of all; with those that have ended.',
  input: { user: userField.optional() },
  errors: ['not_found'],
  reply: ['The keys.', z.object({ keys: z.array(keySchema) })],
  read: async ({ store: { read }, clock }: PeopleDeps, { user }) => {
    const owners = user === undefined ? await read.users.list() : [await users.findUser(read.users, user)];
    const all: Key[] = [];
    for (const { id, email } of owners)
      for (const key of await read.keys.ofUser(id)) all.push(toKey(key, email, clock.now()));
    return { keys: all };
  },
  commands: [
    {
      name: 'keys ls',
      description: 'list the keys of a user, or of all',
      args: { user: ['[email]'] },
      list: {},
    },
  ],
  list: {
    rows: 'keys',
    title: 'Keys of users',
    none: 'There is no such key.',
    columns: ['id', 'user', 'key', 'label', 'state', 'created_at', 'expires_at', 'last_used_at'],
  },
});

function toKey(key: ApiKeyRecord, user: string, now: number): Key {
  const { id, prefix, lastFour, label, revokedAt, expiresAt } = key;
  const hasExpired = expiresAt !== null && expiresAt <= now;
  return {
    id,
    user,
    key: `${prefix}…${lastFour}`,
    label,
    state: revokedAt !== null ? 'revoked' : hasExpired ? 'expired' : 'valid',
    created_at: toTime(key.createdAt),
    expires_at: toTime(expiresAt),
    last_used_at: toTime(key.lastUsedAt),
  };
}

export const createKey = defineAction({
  name: 'createKey',
  tag: 'People',
  path: '/users/{user}/keys',
  summary: 'Create a key for a user',
  description: 'The key is shown only once.',
  input: {
    user: userField,
    label: z.string().max(200).optional(),
    expires_at: timestampSchema.optional().meta({ description: 'Absent: no expiry.' }),
  },
  example: { expires_at: '2030-01-01T00:00:00Z' },
  isBodyOptional: true,
  status: 201,
  reply: ['The key.', z.object({ id: z.string(), api_key: z.string() })],
  audit: ({ user, label }) => ({ action: 'key.create', subject: user, detail: { label } }),
  run: async (deps: PeopleDeps, { user, label = null, expires_at: expires }) => {
    const expiresAt = expires === undefined ? null : Date.parse(expires);
    const { key, record } = await keys.createKey(deps, user, { label, expiresAt });
    return { id: record.id, api_key: key };
  },
  commands: [
    {
      name: 'keys create',
      description: 'create a key and print it; it is shown only this once',
      args: { user: ['<email>'] },
      flags: {
        label: ['--label <text>', 'what it is for'],
        expires_at: ['--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time'],
      },
      toText: ({ id, api_key: key }) => [key, '', `This is key ${id}. Keep it now: it is not shown again.`],
    },
  ],
});

export const revokeKey = defineAction({
  name: 'revokeKey',
  tag: 'People',
  path: '/keys/{keyId}/revoke',
  summary: 'Revoke a key',
  description: 'Revoking again keeps the first time.',
  input: { keyId: z.string() },
  errors: ['not_found'],
  reply: ['The key is revoked.', z.object({ id: z.string(), revoked_at: timestampSchema })],
  audit: ({ keyId }) => ({ action: 'key.revoke', subject: keyId }),
  run: async (deps: PeopleDeps, { keyId: id }) => ({
    id,
    revoked_at: toTime(await keys.revokeKey(deps, id)),
  }),
  commands: [
    {
      name: 'keys revoke',
      description: 'end a key; a running server follows within a second',
      args: { keyId: ['<id>'] },
      toText: ({ id, revoked_at: at }) => [`Key ${id} is revoked since ${at}.`],
    },
  ],
  form: {
    title: ({ keyId }) => `Revoke the key ${keyId}`,
    button: 'Revoke',
    isDangerous: true,
    inRows: {
      of: 'listKeys',
      fields: ({ id, state }: Key) => (state === 'valid' ? { keyId: id } : undefined),
    },
    page: () => '/console/keys',
    preview: () => ['Whatever uses this key is refused within a second.'],
  },
});
