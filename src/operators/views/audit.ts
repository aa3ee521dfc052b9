import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { type AuditReader, auditOutcomes, auditSources } from '../model.ts';
import { cutPage, nextSchema, toTime, USUAL_PAGE } from './values.ts';

/** An action of an operator. */
export const auditViewSchema = z
  .object({
    id: z.int(),
    at: timestampSchema,
    actor: z
      .string()
      .meta({ description: 'The name of the key; for a command line, the user of that machine.' }),
    source: z.enum(auditSources),
    address: z.string().nullable().meta({ description: 'Null: the machine of the database.' }),
    action: z.string(),
    subject: z.string().nullable(),
    detail: z.record(z.string(), z.unknown()),
    outcome: z.enum(auditOutcomes),
  })
  .meta({ id: 'AuditEntry' });
export type AuditView = z.infer<typeof auditViewSchema>;

export const auditPageSchema = z
  .object({ entries: z.array(auditViewSchema), next: nextSchema })
  .meta({ id: 'AuditPage' });
export type AuditPage = z.infer<typeof auditPageSchema>;

export interface AuditQuery {
  actor?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  /** The `next` of the previous page. */
  after?: string | undefined;
  limit?: number | undefined;
}

/** Lists entries, newest first. */
export async function listAudit(
  read: { audit: AuditReader },
  { after, limit = USUAL_PAGE, ...of }: AuditQuery,
): Promise<AuditPage> {
  const before = after === undefined ? undefined : Number(after);
  const found = await read.audit.page({ ...of, before, limit: limit + 1 });
  const { rows, next } = cutPage(found, limit, ({ id }) => String(id));
  return { entries: rows.map((entry) => ({ ...entry, at: toTime(entry.at) })), next };
}
