import { z } from 'zod';
import { usdFromMicroUsd, usdToDollars } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import { DAY_MS } from '../../../ports/clock.ts';
import type { Reader } from '../../model/store.ts';
import { readVerdict } from './books.ts';
import { listProviders, type ProviderDeps, providerRowSchema, providersList } from './providers.ts';
import { firstToRunOut, teamRowSchema, teamsList } from './teams.ts';

const mailsViewSchema = z.object({
  waiting: z.int(),
  oldest_created_at: timeOrNullSchema.meta({
    description: 'When the oldest waiting mail was written. A failed attempt does not reset it.',
  }),
  next_try_at: timeOrNullSchema.meta({ description: 'Time of the next attempt; null: no mail is waiting.' }),
  given_up: z.int().meta({ description: 'Mails given up in the last 24 hours.' }),
});
type MailsView = z.infer<typeof mailsViewSchema>;

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
    providers: z.array(providerRowSchema),
    first_to_run_out: z
      .array(teamRowSchema)
      .meta({ description: 'The billed teams whose balance runs out first, at most 50.' }),
  })
  .meta({ id: 'Status' });
type StatusView = z.infer<typeof statusViewSchema>;

const TEAMS_SHOWN = 50;

async function readMails({ mail }: Pick<Reader, 'mail'>, now: number): Promise<MailsView> {
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

/** Words the number and age of waiting mails, and how many were given up. */
function describeMails({ mails }: StatusView, now: number): string {
  const { waiting, oldest_created_at: writtenAt, next_try_at: tryAt, given_up: givenUp } = mails;
  const next = tryAt === null || Date.parse(tryAt) <= now ? 'now' : `at ${tryAt}`;
  const sentence =
    waiting === 0
      ? 'none waits'
      : `${waiting} wait, the oldest since ${writtenAt}; the next try is due ${next}`;
  return givenUp === 0
    ? sentence
    : `${sentence}; given up in 24 hours: ${givenUp}, see berth marketplace mail ls --state given_up`;
}

export const statusView = defineView({
  name: 'getStatus',
  tag: 'Views',
  path: '/status',
  summary: 'Overview',
  description:
    'Deployments, teams and their spend, mails, held losses, the last check of the books, the providers, and the teams that run out first.',
  reply: ['The overview.', statusViewSchema],
  commands: [{ name: 'status' }],
  detail: {
    title: () => 'Overview',
    facts: [
      'deployments',
      {
        field: 'teams',
        text: ({ teams }) =>
          `${teams.count}, ${teams.spending} of them are billed, ${usdToDollars(teams.burn_usd_per_hour)} an hour`,
      },
      { field: 'mails', text: describeMails },
      'losses_held',
      'books',
    ],
    lists: [providersList, { ...teamsList, rows: 'first_to_run_out', title: 'Teams that run out first' }],
  },
  read: async ({ store: { read }, clock, providers, maxLosses }: ProviderDeps) => {
    const now = clock.now();
    const billed = await read.teams.spending(now);
    const [active, count, mails, held, verdict, rows, first] = await Promise.all([
      read.deployments.countActive(),
      read.teams.count(),
      readMails(read, now),
      read.losses.countHeld(),
      readVerdict(read),
      listProviders(read, { known: providers(), maxLosses, now }),
      firstToRunOut(read, billed, TEAMS_SHOWN, now),
    ]);
    return {
      deployments: Object.fromEntries(active.map(({ status, count: n }) => [status, n])),
      teams: {
        count,
        spending: billed.length,
        without_balance: billed.filter(({ watch }) => watch.exhaustedAt !== null).length,
        burn_usd_per_hour: usdFromMicroUsd(billed.reduce((sum, team) => sum + team.burnMicroUsdPerHour, 0)),
      },
      mails,
      losses_held: held.reduce((sum, { count: n }) => sum + n, 0),
      books: { verified_at: verdict?.at ?? null, findings: verdict?.counts['findings'] ?? null },
      providers: rows,
      first_to_run_out: first,
    };
  },
});
