import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import type { OperatorKeyReader } from '../model.ts';
import { defineView } from '../operation.ts';
import { timeOrNullSchema, toTime } from './values.ts';

/** A key of an operator, without its digest. */
const operatorKeyViewSchema = z
  .object({
    id: z.string(),
    name: z.string(),
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
  return keys.map(({ id, name, prefix, lastFour, createdAt, revokedAt, lastUsedAt }) => ({
    id,
    name,
    key: `${prefix}…${lastFour}`,
    state: revokedAt === null ? 'valid' : 'revoked',
    created_at: toTime(createdAt),
    revoked_at: toTime(revokedAt),
    last_used_at: toTime(lastUsedAt),
  }));
}

/** `GET /operator-keys`. Keys are made on the command line, which shows each once. */
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
