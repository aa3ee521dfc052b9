import { z } from 'zod';
import { usdFromMicroUsd } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import { DAY_MS } from '../../../ports/clock.ts';
import type { SpendingTeam } from '../../model/people-store.ts';
import type { Reader } from '../../model/store.ts';
import { readVerdict } from './books.ts';
import type { ViewDeps } from './pages.ts';

const mailsViewSchema = z.object({
  waiting: z.int(),
  oldest_created_at: timeOrNullSchema.meta({
    description: 'When the oldest waiting mail was written. A failed attempt does not reset it.',
  }),
  next_try_at: timeOrNullSchema.meta({ description: 'Time of the next attempt; null: no mail is waiting.' }),
  given_up: z.int().meta({ description: 'Mails given up in the last 24 hours.' }),
});
export type MailsView = z.infer<typeof mailsViewSchema>;

const statusViewSchema = z
  .object({
    deployments: z
      .record(z.string(), z.int())
      .meta({ description: 'Deployments that have not ended, by status.' }),
    teams: z.object({
      count: z.int(),
      spending: z.int().meta({ description: 'Teams that are billed now.' }),
      without_balance: z.int().meta({ description: 'Billed teams whose balance is used up.' }),
      burn_usd_per_hour: z.number().meta({ description: 'Hourly cost of all teams, before discounts.' }),
    }),
    mails: mailsViewSchema,
    losses_held: z.int(),
    books: z.object({
      verified_at: timeOrNullSchema,
      findings: z.int().nullable().meta({ description: 'Findings of the last check; null: never checked.' }),
    }),
  })
  .meta({ id: 'Status' });
export type StatusView = z.infer<typeof statusViewSchema>;

/** `spending`: the teams with at least one open segment. */
export async function readStatus(
  read: Reader,
  spending: readonly SpendingTeam[],
  now: number,
): Promise<StatusView> {
  const [active, count, mails, held, verdict] = await Promise.all([
    read.deployments.countActive(),
    read.teams.count(),
    readMails(read, now),
    read.losses.countHeld(),
    readVerdict(read),
  ]);
  return {
    deployments: Object.fromEntries(active.map(({ status, count: n }) => [status, n])),
    teams: {
      count,
      spending: spending.length,
      without_balance: spending.filter(({ watch }) => watch.exhaustedAt !== null).length,
      burn_usd_per_hour: usdFromMicroUsd(spending.reduce((sum, team) => sum + team.burnMicroUsdPerHour, 0)),
    },
    mails,
    losses_held: held.reduce((sum, { count: n }) => sum + n, 0),
    books: { verified_at: verdict?.at ?? null, findings: verdict?.counts['findings'] ?? null },
  };
}

export async function readMails({ mail }: Pick<Reader, 'mail'>, now: number): Promise<MailsView> {
  const [{ count, oldestCreatedAt, nextDueAt }, givenUp] = await Promise.all([
    mail.waiting(),
    mail.countGivenUpSince(now - DAY_MS),
  ]);
  return {
    waiting: count,
    oldest_created_at: toTime(oldestCreatedAt),
    next_try_at: toTime(nextDueAt),
    given_up: givenUp,
  };
}

export const statusView = defineView({
  name: 'getStatus',
  tag: 'Views',
  path: '/status',
  summary: 'Summary figures',
  description: 'Deployments, teams and their spend, mails, held losses, and the last check of the books.',
  reply: ['The figures.', statusViewSchema],
  read: async ({ store: { read }, clock }: ViewDeps) =>
    readStatus(read, await read.teams.spending(clock.now()), clock.now()),
});
