import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import type { OperatorKeyReader } from '../model.ts';
import { timeOrNullSchema, toTime } from './values.ts';

/** A key of an operator, without its digest. */
export const operatorKeyViewSchema = z
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
export type OperatorKeyView = z.infer<typeof operatorKeyViewSchema>;

export const operatorKeyListSchema = z
  .object({ keys: z.array(operatorKeyViewSchema) })
  .meta({ id: 'OperatorKeyList' });

export async function listOperatorKeys(read: {
  operatorKeys: OperatorKeyReader;
}): Promise<OperatorKeyView[]> {
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
