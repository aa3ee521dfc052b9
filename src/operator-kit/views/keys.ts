import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { completeId } from '../complete-id.ts';
import { createOperatorKey, type KeyStore, revokeOperatorKey } from '../keys.ts';
import { type OperatorKeyReader, roles } from '../model.ts';
import { defineAction, defineView } from '../operation.ts';
import { timeOrNullSchema, toTime } from './values.ts';

/** A key of an operator, without its digest. */
const operatorKeyViewSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    role: z.enum(roles),
    key: z.string().meta({ description: 'Its beginning and its end.' }),
    state: z.enum(['valid', 'revoked']),
    created_at: timestampSchema,
    revoked_at: timeOrNullSchema,
    last_used_at: timeOrNullSchema,
  })
  .meta({ id: 'OperatorKey' });
type OperatorKeyView = z.infer<typeof operatorKeyViewSchema>;

const operatorKeyListSchema = z
  .object({ keys: z.array(operatorKeyViewSchema) })
  .meta({ id: 'OperatorKeyList' });

async function listOperatorKeys(read: { operatorKeys: OperatorKeyReader }): Promise<OperatorKeyView[]> {
  const keys = await read.operatorKeys.list();
  return keys.map(({ id, name, role, prefix, lastFour, createdAt, revokedAt, lastUsedAt }) => ({
    id,
    name,
    role,
    key: `${prefix}…${lastFour}`,
    state: revokedAt === null ? 'valid' : 'revoked',
    created_at: toTime(createdAt),
    revoked_at: toTime(revokedAt),
    last_used_at: toTime(lastUsedAt),
  }));
}

/** `GET /operator-keys` */
export function operatorKeysView(command: string, texts: { tag: string; description: string }) {
  return defineView({
    name: 'listOperatorKeys',
    path: '/operator-keys',
    summary: 'Keys of operators',
    ...texts,
    reply: ['The keys.', operatorKeyListSchema],
    commands: [
      {
        name: 'operators ls',
        description: 'list the keys of operators',
        list: {},
      },
    ],
    list: {
      rows: 'keys',
      title: 'Operators’ keys',
      none: `There is no key of an operator: see \`${command} create\`.`,
      columns: [
        { field: 'id', kind: 'id' },
        'name',
        'role',
        'key',
        'state',
        'created_at',
        'revoked_at',
        'last_used_at',
      ],
    },
    read: async ({ store }: { store: { read: { operatorKeys: OperatorKeyReader } } }) => ({
      keys: await listOperatorKeys(store.read),
    }),
  });
}

export interface KeyDeps {
  store: KeyStore;
  clock: Clock;
  random: Random;
}

const page = (): string => '/console/operator-keys';

/** What makes and ends the keys of operators. `command`: that of the product. */
export function operatorKeyActions(command: string, tag: string) {
  const create = defineAction({
    name: 'createOperatorKey',
    tag,
    path: '/operator-keys',
    summary: 'Create a key for an operator',
    description: 'The key is shown only once. An operator may have several.',
    needs: 'admin',
    input: {
      name: z.string().meta({ description: 'The operator, such as `ann`.' }),
      role: z.enum(roles).default('admin').meta({
        description:
          '`viewer`: sees everything · `on-call`: also acts on what runs · `admin`: also on money, accounts and keys.',
      }),
    },
    example: { name: 'ann', role: 'on-call' },
    status: 201,
    errors: [],
    reply: ['The key.', z.object({ id: z.string(), operator_key: z.string() })],
    audit: ({ name, role }) => ({ action: 'operator_key.create', subject: name, detail: { role } }),
    run: async (deps: KeyDeps, { name, role }) => {
      const { key, record } = await createOperatorKey(deps, { name, role });
      return { id: record.id, operator_key: key };
    },
    commands: [
      {
        name: 'operators create',
        description: 'create a key of an operator and print it; it is shown only this once',
        args: { name: ['<name>'] },
        flags: { role: ['--role <role>', 'what it may do', { default: 'admin' }] },
        toText: ({ id, operator_key: key }, { name }) => [
          key,
          '',
          `This is key ${id} of ${name}. Keep it now: it is not shown again.`,
        ],
      },
    ],
    form: {
      title: () => 'Create a key for an operator',
      button: 'Create the key',
      beside: 'listOperatorKeys',
      needsFreshSignIn: true,
      secret: ({ operator_key: key }) => key,
      page,
    },
  });
  const revoke = defineAction({
    name: 'revokeOperatorKey',
    tag,
    path: '/operator-keys/{keyId}/revoke',
    summary: 'Revoke a key of an operator',
    description:
      'It ends at once, with every session of the console that it began. Revoking again keeps the first time.',
    needs: 'admin',
    input: { keyId: z.string() },
    errors: ['not_found'],
    reply: ['The key is revoked.', z.object({ id: z.string(), revoked_at: timestampSchema })],
    resolve: async ({ store: { read } }: KeyDeps, { keyId }) => ({
      keyId: completeId(
        (await read.operatorKeys.list()).map(({ id }) => id),
        keyId,
      ),
    }),
    audit: ({ keyId }) => ({ action: 'operator_key.revoke', subject: keyId }),
    run: async (deps: KeyDeps, { keyId: id }) => {
      const { revokedAt } = await revokeOperatorKey({ ...deps, command }, id);
      return { id, revoked_at: toTime(revokedAt) };
    },
    commands: [
      {
        name: 'operators revoke',
        description: 'end a key of an operator at once, with every session of the console that it began',
        args: { keyId: ['<id>'] },
        toText: ({ id, revoked_at: at }) => [`Key ${id} is revoked since ${at}.`],
      },
    ],
    form: {
      title: ({ keyId }) => `Revoke the key ${keyId}`,
      button: 'Revoke',
      isDangerous: true,
      inRows: {
        of: 'listOperatorKeys',
        fields: ({ id, state }: OperatorKeyView) => (state === 'valid' ? { keyId: id } : undefined),
      },
      preview: (_reply, _deps, { keyId }) => [`Whoever has the key ${keyId} is signed out at once.`],
      page,
    },
  });
  return { create, revoke };
}
