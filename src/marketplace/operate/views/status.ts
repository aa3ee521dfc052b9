import { z } from 'zod';
import { usdFromMicroUsd } from '../../../contract/values.ts';
import { timeOrNullSchema, toTime } from '../../../operators/views/values.ts';
import type { Reader, TeamWithLoad } from '../../model/store.ts';
import { readVerdict } from './books.ts';

/** What there is, in figures. */
export const statusViewSchema = z
  .object({
    deployments: z.record(z.string(), z.int()).meta({ description: 'How many are not over, by status.' }),
    teams: z.object({
      count: z.int(),
      spending: z.int().meta({ description: 'Those that are billed for something.' }),
      without_balance: z.int().meta({ description: 'Of these, those whose stored balance is used up.' }),
      burn_usd_per_hour: z.number().meta({ description: 'Of all of them, before discounts.' }),
    }),
    mails: z.object({ waiting: z.int(), oldest_due_at: timeOrNullSchema }),
    losses_held: z.int(),
    books: z.object({
      verified_at: timeOrNullSchema,
      findings: z.int().nullable().meta({ description: 'Of the last check; null: there was none.' }),
    }),
  })
  .meta({ id: 'Status' });
export type StatusView = z.infer<typeof statusViewSchema>;

/** `spending`: the teams that are billed for something. */
export async function readStatus(read: Reader, spending: readonly TeamWithLoad[]): Promise<StatusView> {
  const [active, count, waiting, dueAt, held, verdict] = await Promise.all([
    read.deployments.countActive(),
    read.teams.count(),
    read.mail.countWaiting(),
    read.mail.nextDueAt(),
    read.losses.countHeld(),
    readVerdict(read),
  ]);
  return {
    deployments: Object.fromEntries(active.map(({ status, count: n }) => [status, n])),
    teams: {
      count,
      spending: spending.length,
      without_balance: spending.filter(({ balanceMicroUsd }) => balanceMicroUsd <= 0).length,
      burn_usd_per_hour: usdFromMicroUsd(
        spending.reduce((sum, { openRateMilliUsd }) => sum + openRateMilliUsd * 1000, 0),
      ),
    },
    mails: { waiting, oldest_due_at: toTime(dueAt) },
    losses_held: held.reduce((sum, { count: n }) => sum + n, 0),
    books: { verified_at: verdict?.at ?? null, findings: verdict?.counts['findings'] ?? null },
  };
}
