import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { completeId } from '../../../operator-kit/complete-id.ts';
import { defineAction, outsideApi } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import * as accounts from '../../accounts/accounts.ts';
import type { Store } from '../../model/store.ts';
import { type ApiKeyRow, findAccount } from '../views/accounts.ts';
import { ActionRefused } from './refused.ts';

export interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

export const createAccount = defineAction({
  name: 'createAccount',
  tag: 'Accounts',
  path: '/accounts',
  summary: 'Create an account',
  description: 'The account has no key yet.',
  input: { name: z.string(), id: outsideApi(z.string().optional()) },
  example: { name: 'acme' },
  status: 201,
  errors: [],
  reply: ['The account.', z.object({ id: z.string(), name: z.string() })],
  commands: [
    {
      name: 'accounts create',
      description: 'create an account',
      args: { name: ['<name>'] },
      flags: { id: ['--id <id>', 'the former id of an account that is missing from a restored database'] },
      toText: ({ id, name }) => [
        `Account ${name} (${id}) is created. Give it a key: berth keys create --account ${name}`,
      ],
    },
  ],
  form: {
    title: () => 'Create an account',
    button: 'Create',
    page: () => '/console/accounts',
    beside: 'listAccounts',
  },
  audit: ({ name }) => ({ action: 'account.create', subject: name }),
  run: async (deps: Deps, { name, id }) => ({ id: (await accounts.createAccount(deps, name, id)).id, name }),
});

export const createKey = defineAction({
  name: 'createKey',
  tag: 'Accounts',
  path: '/accounts/{account}/keys',
  summary: 'Create a key for an account',
  description:
    'The key is shown only once. An account can have several valid keys, so they can be rotated without downtime.',
  input: {
    account: z.string().meta({ description: 'The name or the id of an account.' }),
    label: z.string().max(200).optional(),
    expires_at: timestampSchema.optional().meta({ description: 'Absent: no expiry.' }),
  },
  example: { label: 'rotation of May' },
  isBodyOptional: true,
  status: 201,
  reply: ['The key.', z.object({ id: z.string(), api_key: z.string() })],
  commands: [
    {
      name: 'keys create',
      description: 'create a key and print it; it is shown only this once',
      flags: {
        account: ['--account <name>', 'the account of the key', { default: accounts.DEFAULT_ACCOUNT }],
        label: ['--label <text>', 'what it is for'],
        expires_at: ['--expires <when>', 'when it ends: in 30m, 2h or 7d, or at an RFC 3339 time'],
      },
      toText: ({ id, api_key: key }) => [key, '', `This is key ${id}. Keep it now: it is not shown again.`],
    },
  ],
  audit: async ({ account, label }, { store: { read } }: Deps) => ({
    action: 'key.create',
    subject: (await findAccount(read, account))?.name ?? account,
    detail: { label },
  }),
  run: async (deps: Deps, { account, label, expires_at: expires }) => {
    const expiresAt = expires === undefined ? null : Date.parse(expires);
    if (expiresAt !== null && expiresAt <= deps.clock.now())
      throw new ActionRefused(`expires_at ${expires} is in the past: give a future time.`, 'invalid_request');
    const { key, record } = await accounts.createKey(deps, account, { label, expiresAt });
    return { id: record.id, api_key: key };
  },
});

export const revokeKey = defineAction({
  name: 'revokeKey',
  tag: 'Accounts',
  path: '/keys/{keyId}/revoke',
  summary: 'Revoke a key and every token issued with it',
  description:
    'Revoking again keeps the first time. It applies at once in the server that did it, and within a second in others.',
  input: { keyId: z.string() },
  errors: ['not_found'],
  reply: ['The key is revoked.', z.object({ id: z.string(), revoked_at: timestampSchema })],
  commands: [
    {
      name: 'keys revoke',
      description: 'end a key, and every token bought with it; a running server follows within a second',
      args: { keyId: ['<id>'] },
      toText: ({ id, revoked_at: at }) => [`Key ${id} is revoked since ${at}.`],
    },
  ],
  form: {
    title: ({ keyId }) => `Revoke key ${keyId}`,
    button: 'Revoke',
    isDangerous: true,
    page: () => '/console/keys',
    inRows: {
      of: 'listKeys',
      fields: ({ id, state }: ApiKeyRow) => (state === 'revoked' ? undefined : { keyId: id }),
    },
    preview: () => ['The key and every token issued with it stop working at once, for good.'],
  },
  resolve: async ({ store: { read } }: Deps, { keyId }) => ({
    keyId: completeId(
      (await read.credentials.listKeys()).map(({ id }) => id),
      keyId,
    ),
  }),
  audit: ({ keyId }) => ({ action: 'key.revoke', subject: keyId }),
  run: async (deps: Deps, { keyId: id }) => {
    const { revokedAt } = await accounts.revokeKey(deps, id);
    return { id, revoked_at: toTime(revokedAt ?? 0) };
  },
});

export const setPassword = defineAction({
  name: 'setPassword',
  tag: 'Accounts',
  path: '/accounts/{account}/password',
  summary: 'Set the password of an account',
  description: 'For `POST /auth/token`. Tokens obtained with the old password end.',
  input: { account: z.string().meta({ description: 'Its name.' }), password: z.string() },
  example: { password: 'a long password' },
  reply: ['The account.', z.object({ name: z.string() })],
  audit: ({ account }) => ({ action: 'account.set_password', subject: account }),
  run: async (deps: Deps, { account: name, password }) => {
    await accounts.setPassword(deps, name, password);
    return { name };
  },
});
