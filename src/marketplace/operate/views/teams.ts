import { z } from 'zod';
import { timestampSchema, usdFromMicroUsd, usdToDollars } from '../../../contract/values.ts';
import type { ListIn, Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import {
  cutPage,
  limitSchema,
  nextSchema,
  timeOrNullSchema,
  toTime,
  USUAL_PAGE,
} from '../../../operator-kit/views/values.ts';
import { teamRoles } from '../../contract/team.ts';
import { flagSchema } from '../../contract/values.ts';
import { readingOf } from '../../ledger/balance.ts';
import { teamOf } from '../../model/own-rows.ts';
import { memberRights, type TeamRecord } from '../../model/people.ts';
import type { SpendingTeam } from '../../model/people-store.ts';
import type { Reader } from '../../model/store.ts';
import { known, textSchema, type ViewDeps } from './pages.ts';

const suspendedSchema = z.string().nullable().meta({ description: 'The reason; null: not suspended.' });

/** A team with its balance and the rate at which it decreases. */
export const teamRowSchema = z
  .object({
    id: z.string(),
    slug: z.string(),
    name: z.string(),
    owner: z.string().meta({ description: 'E-mail address of the owner.' }),
    balance_usd: z.number().meta({ description: 'Balance, less usage that is not charged yet.' }),
    burn_usd_per_hour: z
      .number()
      .meta({ description: 'Hourly cost of everything billed now, before discounts.' }),
    hours_left: z
      .number()
      .nullable()
      .meta({ description: 'Hours until the balance is used up; null: nothing is billed.' }),
    billed: z.int().meta({ description: 'Number of deployments and volumes billed now.' }),
    exhausted_at: timeOrNullSchema.meta({ description: 'When its balance reached zero.' }),
    suspended: suspendedSchema,
    created_at: timestampSchema,
  })
  .meta({ id: 'Team' });
export type TeamRow = z.infer<typeof teamRowSchema>;

const teamPageSchema = z.object({ teams: z.array(teamRowSchema), next: nextSchema }).meta({ id: 'TeamPage' });
const billedSchema = z.object({
  id: z.string().meta({ description: 'Id of a deployment or volume.' }),
  kind: z.enum(['deployment', 'volume']),
  state: z.string(),
  usd_per_hour: z.number(),
  since: timestampSchema,
  taken_usd: z.number().meta({ description: 'Charged to the balance at this rate.' }),
});

/** The details of a team: its members, what it pays for, and its newest ledger transactions. */
const teamDetailSchema = teamRowSchema
  .extend({
    member_rights: z
      .enum(memberRights)
      .meta({ description: 'What a `member` may change and end: `own` what they made, or `all`.' }),
    members: z.array(
      z.object({
        user_id: z.string(),
        email: z.string(),
        name: z.string(),
        role: z.enum(teamRoles),
        suspended: suspendedSchema,
        joined_at: timestampSchema,
      }),
    ),
    pays_for: z.array(billedSchema).meta({ description: 'Highest hourly cost first.' }),
    booked: z.array(
      z.object({
        id: z.string(),
        at: timestampSchema,
        kind: z.string(),
        memo: z.string(),
        reference: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'TeamDetail' });
export type TeamDetail = z.infer<typeof teamDetailSchema>;

type TeamReads = Pick<Reader, 'teams' | 'users' | 'ledger' | 'discounts'>;

/**
 * The spending teams that run out first. They are sorted by a lower bound of their balance, so that only the shown
 * teams are read in full.
 */
export async function firstToRunOut(
  read: TeamReads,
  spending: readonly SpendingTeam[],
  limit: number,
  now: number,
): Promise<TeamRow[]> {
  const lasts = (team: SpendingTeam): number =>
    (team.balanceMicroUsd - team.mostAccruedMicroUsd) / Math.max(1, team.burnMicroUsdPerHour);
  const soonest = spending.toSorted((a, b) => lasts(a) - lasts(b)).slice(0, limit);
  return Promise.all(soonest.map((team) => toTeamRow(read, team, now)));
}

async function toTeamRow(read: TeamReads, team: TeamRecord, now: number): Promise<TeamRow> {
  const owner = await read.users.byId(team.ownerId);
  const open = await read.ledger.openSegmentsOfTeam(team.id);
  const discounts = open.length === 0 ? [] : await read.discounts.ofTeam(team.id);
  const { balanceMicroUsd: balance } = readingOf(team, open, discounts, now);
  const burn = open.reduce((sum, { segment }) => sum + segment.originalRateMicroUsdPerHour, 0);
  return {
    id: team.id,
    slug: team.slug,
    name: team.name,
    owner: owner?.email ?? team.ownerId,
    balance_usd: usdFromMicroUsd(balance),
    burn_usd_per_hour: usdFromMicroUsd(burn),
    hours_left: burn === 0 ? null : Math.max(0, Math.floor((balance / burn) * 10) / 10),
    billed: open.length,
    exhausted_at: toTime(team.watch.exhaustedAt),
    suspended: team.suspension?.reason ?? null,
    created_at: toTime(team.createdAt),
  };
}

const MOST_BILLED = 200;
const MOST_BOOKED = 50;

/** The team with this id or slug; null: there is none. */
async function readTeam(read: TeamReads, idOrSlug: string, now: number): Promise<TeamDetail | null> {
  const found = await teamOf(read.teams, idOrSlug);
  if (found === null) return null;
  const [row, members, open, booked] = await Promise.all([
    toTeamRow(read, found, now),
    read.teams.members(found.id),
    read.ledger.openSegmentsOfTeam(found.id),
    read.ledger.transactionsOf(found.id, MOST_BOOKED),
  ]);
  const dearest = open
    .map(({ segment }) => segment)
    .toSorted((a, b) => b.rateMicroUsdPerHour - a.rateMicroUsdPerHour);
  return {
    ...row,
    member_rights: found.memberRights,
    members: await Promise.all(
      members.map(async ({ userId, role, joinedAt }) => {
        const user = await read.users.byId(userId);
        const { email = '', name = '' } = user ?? {};
        const suspended = user?.suspension?.reason ?? null;
        return { user_id: userId, email, name, role, suspended, joined_at: toTime(joinedAt) };
      }),
    ),
    pays_for: dearest.slice(0, MOST_BILLED).map((segment) => ({
      id: segment.subjectId,
      kind: segment.subjectKind,
      state: segment.state,
      usd_per_hour: usdFromMicroUsd(segment.rateMicroUsdPerHour),
      since: toTime(segment.startedAt),
      taken_usd: usdFromMicroUsd(segment.postedMicroUsd),
    })),
    booked: booked.map(({ id, at, kind, memo, reference }) => ({
      id,
      at: toTime(at),
      kind,
      memo,
      reference,
    })),
  };
}

/** By urgency. */
function toneOf({ hours_left: hours }: Pick<TeamRow, 'hours_left'>): Tone | undefined {
  if (hours === null) return undefined;
  return hours < 1 ? 'bad' : hours < 24 ? 'wait' : 'good';
}

const lasts = {
  field: 'hours_left',
  title: 'lasts',
  text: ({ hours_left: hours }: TeamRow) =>
    hours === null ? null : hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`,
  tone: toneOf,
} as const;

const pageOf = ({ id }: { id: string }): string => `/teams/${encodeURIComponent(id)}`;

/** The columns of a list of them. */
export const teamsList: ListIn<'teams', TeamRow> = {
  rows: 'teams',
  title: 'Teams',
  none: 'No teams found.',
  usual: { spending: true },
  columns: [
    { field: 'id', page: pageOf, isWide: true },
    { field: 'slug', kind: 'name', page: pageOf },
    { field: 'name', under: 'slug' },
    'owner',
    'balance_usd',
    { field: 'burn_usd_per_hour', title: 'per hour' },
    lasts,
    { field: 'billed', isWide: true },
    { field: 'exhausted_at', title: 'at zero since', isWide: true },
    'created_at',
  ],
};

export const teamsView = defineView({
  name: 'listTeams',
  tag: 'Views',
  path: '/teams',
  summary: 'Teams with their balance and hourly cost',
  description:
    'Sorted by slug, in pages; `spending=true` without `q`: teams that are billed now, first to run out first, on one page.',
  input: { q: textSchema, spending: flagSchema, after: z.string().max(255).optional(), limit: limitSchema },
  reply: ['A page of them.', teamPageSchema],
  commands: [
    {
      name: 'teams ls',
      description: 'list the teams: balance, cost per hour, and how long the balance lasts',
      flags: {
        q: ['--find <text>', 'those with this text in id, slug or name'],
        spending: ['--spending', 'only teams with running costs, the soonest to run out first'],
      },
      list: { limit: 100_000 },
    },
  ],
  list: teamsList,
  read: async (
    { store: { read }, clock }: ViewDeps,
    { q: text, spending: isSpending = false, after, limit = USUAL_PAGE },
  ) => {
    const now = clock.now();
    if (isSpending && text === undefined)
      return { teams: await firstToRunOut(read, await read.teams.spending(now), limit, now), next: null };
    const found = await read.teams.page({ text, after, limit: limit + 1 });
    const { rows, next } = cutPage(found, limit, ({ slug }) => slug);
    return { teams: await Promise.all(rows.map((team) => toTeamRow(read, team, now))), next };
  },
});

export const teamView = defineView({
  name: 'showTeam',
  tag: 'Views',
  path: '/teams/{team}',
  summary: 'One team: its members, billed resources and latest bookings',
  description: 'By its slug or its id.',
  input: { team: z.string() },
  errors: ['not_found'],
  reply: ['The team.', teamDetailSchema],
  commands: [
    {
      name: 'teams show',
      description: 'show a team, its members and its running costs',
      args: { team: ['<team>'] },
    },
    {
      name: 'credit show',
      description: 'show the balance of a team and its ledger entries',
      args: { team: ['<team>'] },
      toData: ({ id, name, balance_usd, booked }) => ({
        team_id: id,
        name,
        balance_usd,
        transactions: booked,
      }),
      toText: ({ id, name, balance_usd: usd, booked }) => [
        `${name} (${id}) has ${usdToDollars(usd)} left to spend.`,
        '',
        booked,
      ],
    },
  ],
  detail: {
    title: ({ name }) => name,
    facts: [
      'id',
      { field: 'slug', kind: 'name' },
      'name',
      'owner',
      { field: 'balance_usd', title: 'balance' },
      { field: 'burn_usd_per_hour', title: 'cost per hour, before discounts' },
      { ...lasts, title: 'balance lasts' },
      { field: 'billed', page: ({ id }) => `/deployments?team=${encodeURIComponent(id)}` },
      { field: 'exhausted_at', title: 'at zero since' },
      {
        field: 'member_rights',
        title: 'members may change',
        text: ({ member_rights: rights }) => (rights === 'all' ? 'everything of the team' : 'what they made'),
      },
      'suspended',
      'created_at',
    ],
    lists: [
      {
        rows: 'members',
        title: 'Members',
        none: 'No members.',
        columns: ['email', 'name', 'role', 'suspended', 'joined_at'],
      },
      {
        rows: 'pays_for',
        title: 'Billed now',
        none: 'Nothing is billed now.',
        columns: [
          { field: 'id', kind: 'code', page: ({ id }) => `/bills/${encodeURIComponent(id)}` },
          { field: 'kind', under: 'id' },
          'state',
          'usd_per_hour',
          'since',
          'taken_usd',
        ],
      },
      {
        rows: 'booked',
        title: 'Latest bookings',
        none: 'No bookings.',
        columns: ['at', 'kind', 'memo', 'reference', { field: 'id', isWide: true }],
      },
    ],
  },
  read: async ({ store, clock }: ViewDeps, { team }) =>
    known(
      await readTeam(store.read, team, clock.now()),
      `team "${team}": see \`berth marketplace teams ls\``,
    ),
});
