import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import {
  cutPage,
  limitSchema,
  nextSchema,
  timeOrNullSchema,
  toTime,
  USUAL_PAGE,
} from '../../../operator-kit/views/values.ts';
import type { MailRecord } from '../../model/ledger-records.ts';
import { afterSchema, fromPageEnd, toPageEnd, type ViewDeps } from './pages.ts';

const mailStateSchema = z.enum(['waiting', 'sent', 'given_up']);

/** A mail of the outbox, without its text. */
export const mailRowSchema = z
  .object({
    id: z.string(),
    created_at: timestampSchema,
    to: z.string(),
    kind: z.string(),
    class: z.string(),
    subject: z.string(),
    state: mailStateSchema,
    due_at: timestampSchema,
    attempts: z.int(),
    last_error: z.string().nullable(),
    sent_at: timeOrNullSchema,
    failed_at: timeOrNullSchema.meta({ description: 'When it was given up.' }),
  })
  .meta({ id: 'Mail' });
export type MailRow = z.infer<typeof mailRowSchema>;

const mailPageSchema = z
  .object({ mails: z.array(mailRowSchema), waiting: z.int(), next: nextSchema })
  .meta({ id: 'MailPage' });
export function toMailRow(record: MailRecord): MailRow {
  const { sentAt, failedAt } = record;
  return {
    id: record.id,
    created_at: toTime(record.createdAt),
    to: record.to,
    kind: record.kind,
    class: record.class,
    subject: record.subject,
    state: sentAt !== null ? 'sent' : failedAt !== null ? 'given_up' : 'waiting',
    due_at: toTime(record.dueAt),
    attempts: record.attempts,
    last_error: record.lastError,
    sent_at: toTime(sentAt),
    failed_at: toTime(failedAt),
  };
}

export const mailsView = defineView({
  name: 'listMails',
  tag: 'Views',
  path: '/mails',
  summary: 'The outbox: waiting, sent and given-up mails',
  description: 'Newest first, in pages, without their texts.',
  input: {
    to: z.string().max(320).optional(),
    state: mailStateSchema.optional(),
    after: afterSchema,
    limit: limitSchema,
  },
  reply: ['A page of them.', mailPageSchema],
  commands: [
    {
      name: 'mail ls',
      description: 'list the mails, the newest first',
      flags: {
        to: ['--to <email>', 'to this address only'],
        state: ['--state <state>', 'in this state only'],
      },
      list: { limit: 50 },
    },
  ],
  list: {
    rows: 'mails',
    title: 'Mails',
    about: 'without their texts, the newest first',
    none: 'No mails found.',
    columns: [
      'id',
      { field: 'subject', kind: 'name' },
      { field: 'kind', under: 'subject' },
      { field: 'last_error', kind: 'text', under: 'subject' },
      'to',
      'state',
      {
        field: 'due_at',
        title: 'next try, sent or given up',
        text: ({ sent_at: sent, failed_at: failed, due_at: due }) => sent ?? failed ?? due,
      },
      'attempts',
      'created_at',
    ],
  },
  read: async ({ store }: Pick<ViewDeps, 'store'>, { after, limit = USUAL_PAGE, ...of }) => {
    const { mail } = store.read;
    const [found, waiting] = await Promise.all([
      mail.list({ ...of, after: toPageEnd(after), limit: limit + 1 }),
      mail.waiting(),
    ]);
    const { rows, next } = cutPage(found, limit, ({ createdAt: at, id }) => fromPageEnd({ at, id }));
    return { mails: rows.map(toMailRow), waiting: waiting.count, next };
  },
});
