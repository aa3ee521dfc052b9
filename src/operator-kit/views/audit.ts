import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { linkOfId } from '../columns.ts';
import { type AuditReader, auditOutcomes, auditSources } from '../model.ts';
import { defineView } from '../operation.ts';
import { cutPage, limitSchema, nextSchema, toTime, USUAL_PAGE } from './values.ts';

const auditViewSchema = z
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

const auditPageSchema = z
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
async function listAudit(
  read: { audit: AuditReader },
  { after, limit = USUAL_PAGE, ...of }: AuditQuery,
): Promise<AuditPage> {
  const before = after === undefined ? undefined : Number(after);
  const found = await read.audit.page({ ...of, before, limit: limit + 1 });
  const { rows, next } = cutPage(found, limit, ({ id }) => String(id));
  return { entries: rows.map(({ detail, ...entry }) => ({ ...entry, at: toTime(entry.at), detail })), next };
}

export const auditView = defineView({
  name: 'listAudit',
  tag: 'Views',
  path: '/audit',
  summary: 'List actions of operators',
  description: 'The newest first, page by page; kept for `retention.audit_days`.',
  input: {
    actor: z.string().optional(),
    action: z.string().optional(),
    subject: z.string().optional(),
    after: z
      .string()
      .regex(/^\d{1,15}$/, 'expected the `next` of a page')
      .optional(),
    limit: limitSchema,
  },
  reply: ['A page of the audit log.', auditPageSchema],
  commands: [
    {
      name: 'audit ls',
      description: 'list actions of operators: who, from where, and the outcome, the newest first',
      flags: {
        actor: ['--actor <name>', 'only actions of this operator'],
        action: ['--action <name>', 'only this kind of action, such as alarm.acknowledge'],
        subject: ['--subject <name>', 'only actions on this subject, such as the id of an instance'],
      },
      list: { limit: 50 },
    },
  ],
  list: {
    rows: 'entries',
    title: 'Audit log',
    about: 'actions of operators, the newest first',
    none: 'The audit log has no such entry.',
    usual: { limit: 100 },
    columns: [
      'at',
      'actor',
      'source',
      { field: 'address', under: 'source' },
      { field: 'action', kind: 'code' },
      { field: 'subject', page: ({ subject }) => linkOfId(subject) },
      'outcome',
      { field: 'detail', kind: 'data' },
    ],
  },
  read: ({ store }: { store: { read: { audit: AuditReader } } }, query) => listAudit(store.read, query),
});
