import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { linkOfId, type Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { limitSchema, timeOrNullSchema, toTime, USUAL_PAGE } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Reader, Store } from '../../model/store.ts';
import type { WorkProgress } from '../../model/work.ts';

/** What the platform is doing in a step, as it says itself. */
export const phaseFields = {
  phase: z.string().nullable().meta({
    description: 'What the platform is doing, in its own words, such as `spawning`; null: it does not say.',
  }),
  phase_since: timeOrNullSchema.meta({ description: 'When the platform first reported the phase.' }),
  phase_due_at: timeOrNullSchema.meta({
    description: 'When the phase is overdue: an alarm is raised; null: never.',
  }),
};

export function toPhase(progress: WorkProgress | null | undefined) {
  return {
    phase: progress?.phase ?? null,
    phase_since: toTime(progress?.since ?? null),
    phase_due_at: toTime(progress?.deadlineAt ?? null),
  };
}

const workRowSchema = z
  .object({
    resource: z.string().meta({ description: 'The id of the instance or the volume.' }),
    step: z.string(),
    platform: z.string(),
    attempt: z.int(),
    waits_since: timestampSchema.meta({ description: 'Since when it is due, regardless of retries.' }),
    next_try_at: timestampSchema,
    deadline_at: timeOrNullSchema.meta({ description: 'When the step counts as failed; null: never.' }),
    runs_now: z.boolean(),
    held: z.boolean().meta({ description: 'Whether it waits for an operator to accept a loss.' }),
    ...phaseFields,
    last_problem: z.string().nullable(),
  })
  .meta({ id: 'OpenWork' });

type OpenWork = z.output<typeof workRowSchema>;

const workListSchema = z
  .object({ work: z.array(workRowSchema), total: z.int().meta({ description: 'Number of open steps.' }) })
  .meta({ id: 'OpenWorkList' });
export type WorkList = z.infer<typeof workListSchema>;

/** Whether the phase takes longer than it should. */
export function toneOfPhase({ phase_due_at: due }: Pick<OpenWork, 'phase_due_at'>, now: number) {
  return due !== null && Date.parse(due) <= now ? 'bad' : undefined;
}

function nextTry({ held, runs_now, next_try_at: at }: OpenWork, now: number): string {
  if (held) return 'held';
  if (runs_now) return 'now';
  return Date.parse(at) <= now ? 'due' : at;
}

function toneOfTry({ held, runs_now }: OpenWork): Tone | undefined {
  if (held) return 'bad';
  return runs_now ? 'busy' : undefined;
}

/** The unfinished steps, longest waiting first. */
async function listWork(read: Pick<Reader, 'work'>, now: number, limit: number): Promise<WorkList> {
  const [open, { count }] = await Promise.all([read.work.list(limit), read.work.backlog()]);
  const work = open.map((row) => ({
    resource: row.resourceId,
    step: row.kind,
    platform: row.platform,
    attempt: row.attempt,
    waits_since: toTime(row.waitsSince),
    next_try_at: toTime(row.notBefore),
    deadline_at: toTime(row.deadlineAt),
    runs_now: row.leaseUntil > now,
    held: row.isHeld,
    ...toPhase(row.progress),
    last_problem: row.lastError,
  }));
  return { work, total: count };
}

export const workView = defineView({
  name: 'listWork',
  tag: 'Views',
  path: '/work',
  summary: 'Unfinished steps of work',
  description: 'Longest waiting first.',
  input: { limit: limitSchema },
  reply: ['The steps.', workListSchema],
  commands: [
    {
      name: 'work ls',
      description: 'list unfinished steps, the longest waiting first',
      list: { limit: 100 },
    },
  ],
  list: {
    rows: 'work',
    title: 'Open work',
    about: 'longest waiting first',
    none: 'No work is open.',
    usual: { limit: 200 },
    columns: [
      { field: 'resource', kind: 'code', page: ({ resource }) => linkOfId(resource) },
      'step',
      { field: 'phase', under: 'step', kind: 'text' },
      { field: 'phase_since', title: 'begun', under: 'step', isWide: true },
      { field: 'phase_due_at', title: 'due', under: 'step', isWide: true, tone: toneOfPhase },
      { field: 'last_problem', under: 'step', kind: 'text' },
      'platform',
      { field: 'attempt', title: 'try' },
      'waits_since',
      { field: 'next_try_at', title: 'next try', text: nextTry, tone: toneOfTry },
      { field: 'deadline_at', title: 'deadline' },
    ],
  },
  read: (deps: { store: Pick<Store, 'read'>; clock: Pick<Clock, 'now'> }, { limit = USUAL_PAGE }) =>
    listWork(deps.store.read, deps.clock.now(), limit),
});
