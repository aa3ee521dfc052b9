import { z } from 'zod';
import { timestampSchema, usdFromMicroUsd } from '../../../contract/values.ts';
import { linkOfId } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { cutPage, limitSchema, nextSchema, toTime, USUAL_PAGE } from '../../../operator-kit/views/values.ts';
import { flagSchema } from '../../contract/values.ts';
import { type Bill, explainBill, readBill } from '../../ledger/explain-bill.ts';
import type { LedgerVerdict } from '../../ledger/verify-ledger.ts';
import type { Reader, Store } from '../../model/store.ts';
import { afterSchema, fromPageEnd, known, type PageQuery, toPageEnd, type ViewDeps } from './pages.ts';

/** The sum of an account of the ledger, as of the last verification. */
const accountSchema = z.object({ account: z.string(), amount_usd: z.number() });

const verdictSchema = z.object({
  at: timestampSchema,
  findings: z.array(z.object({ id: z.string(), problem: z.string() })),
  counts: z.record(z.string(), z.int()),
  accounts: z.array(accountSchema).meta({ description: '`teams`: the balances of all teams.' }),
});
type Verdict = z.infer<typeof verdictSchema>;

const bookingSchema = z.object({
  id: z.string(),
  at: timestampSchema,
  kind: z.string(),
  team_id: z.string(),
  amount_usd: z.number(),
  memo: z.string(),
  reference: z.string().nullable(),
});

/** The result of the last verification, and the bookings other than usage. */
const booksSchema = z
  .object({
    verified: verdictSchema
      .nullable()
      .meta({ description: 'Null: `berth marketplace verify-ledger` never ran.' }),
    booked: z.array(bookingSchema),
    next: nextSchema,
  })
  .meta({ id: 'Books' });
export type Books = z.infer<typeof booksSchema>;

/** Payments, grants and adjustments, the newest first. Usage is on the bills. */
export async function readBooks(
  read: Pick<Reader, 'ledger' | 'settings'>,
  { after, limit = USUAL_PAGE }: PageQuery,
): Promise<Books> {
  const [verified, found] = await Promise.all([
    readVerdict(read),
    read.ledger.bookings({ after: toPageEnd(after), limit: limit + 1 }),
  ]);
  const { rows, next } = cutPage(found, limit, fromPageEnd);
  const booked = rows.map(({ id, at, kind, teamId, amountMicroUsd, memo, reference }) => ({
    id,
    at: toTime(at),
    kind,
    team_id: teamId,
    amount_usd: usdFromMicroUsd(amountMicroUsd),
    memo,
    reference,
  }));
  return { verified, booked, next };
}

const VERDICT = 'ledger_verdict';
/** How many findings are stored. The command prints all. */
const MOST_FINDINGS = 50;

export async function readVerdict({ settings }: Pick<Reader, 'settings'>): Promise<Verdict | null> {
  const kept = await settings.get(VERDICT);
  // A verdict stored by another version may have a different shape. The next verification replaces it.
  return kept === null ? null : (verdictSchema.safeParse(JSON.parse(kept)).data ?? null);
}

/**
 * Stores the result of a verification with the sums of the accounts, which take equally long to compute. Pages show it.
 */
export async function keepVerdict(
  store: Pick<Store, 'read' | 'transact'>,
  { findings, counts }: LedgerVerdict,
  now: number,
): Promise<void> {
  const { accounts } = await sumAccounts(store.read);
  const verdict: Verdict = {
    at: toTime(now),
    findings: findings.slice(0, MOST_FINDINGS),
    counts: { ...counts, findings: findings.length },
    accounts,
  };
  await store.transact((tx) => tx.settings.put(VERDICT, JSON.stringify(verdict)));
}

/** The sum of each account of the ledger. The balances of all teams are one account, `teams`. */
export async function sumAccounts({ ledger }: Pick<Reader, 'ledger'>) {
  const balances = await ledger.balances();
  const ofTeams = balances.filter(({ account }) => account.startsWith('team:'));
  const amountMicroUsd = ofTeams.reduce((sum, one) => sum + one.amountMicroUsd, 0);
  const all = [{ account: 'teams', amountMicroUsd }, ...balances.filter((one) => !ofTeams.includes(one))];
  const accounts = all.map(({ account, amountMicroUsd: microUsd }) => ({
    account,
    amount_usd: usdFromMicroUsd(microUsd),
  }));
  return { teams: ofTeams.length, accounts };
}

export const accountMeanings: Readonly<Record<string, string>> = {
  teams: 'balances of all teams',
  cash: 'payments by teams',
  promotion: 'grants to teams',
  'revenue:compute': 'revenue from deployments',
  'revenue:storage': 'revenue from volumes',
};

const amount = z.number().nullable();

/** The bill of a deployment or a volume, by rate. */
const billSchema = z
  .object({
    id: z.string(),
    segments: z.array(
      z.object({
        state: z.string(),
        from: timestampSchema,
        until: timestampSchema.nullable(),
        hourly_rate_usd: z.number(),
        original_hourly_rate_usd: z.number(),
        discount_percent: z.number(),
        provider_hourly_rate_usd: amount,
        taken_usd: z.number(),
        days: z.array(z.object({ day: z.string(), taken_usd: z.number() })).optional(),
        margin_usd: amount,
      }),
    ),
    taken_usd: z.number().meta({ description: 'Charged to the balance of its team.' }),
    used_since_usd: z.number(),
    provider_usd: amount.meta({ description: 'Cost at the provider; null: not known.' }),
    margin_usd: amount,
  })
  .meta({ id: 'Bill' });

/** The bill of a deployment, or of a volume by either of its ids; null: not found. */
export async function explainBillOf(
  read: Pick<Reader, 'deployments' | 'volumes' | 'ledger' | 'discounts'>,
  id: string,
  { byDay, now }: { byDay: boolean; now: number },
): Promise<Bill | null> {
  const { deployments, volumes } = read;
  const found = (await deployments.byId(id)) ?? (await volumes.byId(id)) ?? (await volumes.byVolumeId(id));
  return found === null ? null : readBill(read, found.id, now, { byDay });
}

export const booksView = defineView({
  name: 'readBooks',
  tag: 'Views',
  path: '/books',
  summary: 'Result of the last check of the books, and bookings other than usage',
  description:
    '`berth marketplace verify-ledger` checks them in a separate process. Payments, grants and corrections, newest first.',
  input: { after: afterSchema, limit: limitSchema },
  reply: ['The books.', booksSchema],
  list: {
    rows: 'booked',
    title: 'Books',
    about: 'payments, grants and corrections, the newest first',
    none: 'No bookings.',
    columns: [
      'at',
      'kind',
      { field: 'team_id', title: 'team', page: ({ team_id: team }) => linkOfId(team) },
      'amount_usd',
      'memo',
      'reference',
    ],
  },
  read: ({ store }: Pick<ViewDeps, 'store'>, query) => readBooks(store.read, query),
});

export const billView = defineView({
  name: 'explainBill',
  tag: 'Views',
  path: '/bills/{subjectId}',
  summary: 'Bill of a deployment or volume, rate by rate',
  description: 'Same content as `berth marketplace explain-bill`, with the cost at the provider.',
  input: { subjectId: z.string(), by_day: flagSchema },
  errors: ['not_found'],
  reply: ['The bill.', billSchema],
  commands: [
    {
      name: 'explain-bill',
      args: { subjectId: ['<id>', 'a deployment or a volume'] },
      flags: { by_day: ['--by-day', 'show the amount of each UTC day'] },
      toText: explainBill,
    },
  ],
  read: async ({ store, clock }: ViewDeps, { subjectId, by_day: byDay = false }) =>
    known(
      await explainBillOf(store.read, subjectId, { byDay, now: clock.now() }),
      `deployment or volume "${subjectId}"`,
    ),
});
