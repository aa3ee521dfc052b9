import { z } from 'zod';
import { microUsdFromUsd, timestampSchema, toDollars, usdFromMicroUsd } from '../../../contract/values.ts';
import { defineView, type Flag, onlyPrinted, type TextPart } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import { monthOf, periodOf, revenueByDay, sumByProvider } from '../../ledger/statements.ts';
import { findTeam } from '../../model/own-rows.ts';
import type { Reader } from '../../model/store.ts';
import type { ViewDeps } from './pages.ts';
import { toCsv, toHtml } from './statement-text.ts';

const HOUR_MS = 3_600_000;
const monthSchema = z
  .string()
  .regex(/^[1-9]\d{3}-(0[1-9]|1[0-2])$/, 'expected a month such as 2026-11')
  .optional()
  .meta({ description: 'Such as `2026-11`, in UTC. Absent: the current one, as far as it is charged.' });
const formatSchema = onlyPrinted(z.enum(['text', 'csv', 'html']).optional());
const flags: Readonly<Record<string, Flag>> = {
  month: ['--month <month>', 'such as 2026-11; default: the current one'],
  format: ['--format <format>', 'a table, CSV, or a page to print', { default: 'text' }],
};

const usedSchema = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['deployment', 'volume']),
  provider: z.string(),
  state: z.string(),
  from: timestampSchema,
  until: timestampSchema,
  hours: z.number(),
  usd_per_hour: z.number(),
  amount_usd: z.number(),
});

const statementSchema = z
  .object({
    team_id: z.string(),
    team: z.string(),
    month: z.string(),
    opening_usd: z.number().meta({ description: 'The balance at the beginning of the month.' }),
    booked: z.array(
      z.object({
        at: timestampSchema,
        kind: z.string(),
        memo: z.string(),
        reference: z.string().nullable(),
        amount_usd: z.number(),
      }),
    ),
    used: z.array(usedSchema).meta({ description: 'One row for each resource and rate.' }),
    booked_usd: z.number(),
    used_usd: z.number(),
    closing_usd: z.number().meta({
      description: 'From the ledger: the opening balance plus what was booked, less what was used.',
    }),
    is_final: z.boolean().meta({
      description:
        'Whether the month is over and charged. Usage is charged once its provider has confirmed it.',
    }),
  })
  .meta({ id: 'Statement' });
export type Statement = z.output<typeof statementSchema>;

const toHours = (ms: number): number => Math.round((ms / HOUR_MS) * 1_000) / 1_000;
const sumOf = (rows: readonly { amountMicroUsd: number }[]): number =>
  rows.reduce((sum, { amountMicroUsd }) => sum + amountMicroUsd, 0);

/** @throws {OperatorError} if there is no such team */
export async function readStatement(
  read: Pick<Reader, 'teams' | 'ledger'>,
  idOrSlug: string,
  month: string,
  now: number,
): Promise<Statement> {
  const { id, name } = await findTeam(read.teams, idOrSlug);
  const period = periodOf(month);
  const balanceAt = async (at: number) => sumOf(await read.ledger.balancesAt(at, `team:${id}`));
  const [open, opening, closing, booked, used] = await Promise.all([
    read.ledger.openSegmentsOfTeam(id),
    balanceAt(period.from),
    balanceAt(period.to),
    read.ledger.bookingsOf(id, period),
    read.ledger.usageRows(id, period),
  ]);
  return {
    team_id: id,
    team: name,
    month,
    opening_usd: usdFromMicroUsd(opening),
    booked: booked.map(({ at, kind, memo, reference, amountMicroUsd }) => ({
      at: toTime(at),
      kind,
      memo,
      reference,
      amount_usd: usdFromMicroUsd(amountMicroUsd),
    })),
    used: used.map((row) => ({
      id: row.subjectId,
      name: row.name,
      kind: row.subjectKind,
      provider: row.providerId,
      state: row.state,
      from: toTime(row.from),
      until: toTime(row.to),
      hours: toHours(row.to - row.from),
      usd_per_hour: usdFromMicroUsd(row.rateMicroUsdPerHour),
      amount_usd: usdFromMicroUsd(row.amountMicroUsd),
    })),
    booked_usd: usdFromMicroUsd(sumOf(booked)),
    used_usd: usdFromMicroUsd(sumOf(used)),
    closing_usd: usdFromMicroUsd(closing),
    is_final:
      now >= period.to &&
      open.every(({ segment: { startedAt, postedUntil } }) => Math.max(startedAt, postedUntil) >= period.to),
  };
}

/** The parts of a statement, as its text, its CSV and its page show them. */
export function partsOfStatement({ booked, used, ...sums }: Statement): Parts {
  const { team, team_id: id, month, is_final: isFinal } = sums;
  return {
    title: `Statement of ${team} (${id}) for ${month}`,
    sums,
    facts: {
      opening_balance: toUsd(sums.opening_usd),
      payments_grants_and_corrections: toUsd(sums.booked_usd),
      usage: toUsd(-sums.used_usd),
      closing_balance: toUsd(sums.closing_usd),
      final: isFinal ? 'yes' : 'no: the month is not over, or usage in it is not confirmed and charged yet',
    },
    tables: { booked, used },
  };
}

const toUsd = (usd: number): string => toDollars(Math.round(usd * 1_000_000));

export type Parts = {
  title: string;
  /** In files for programs. */
  sums: object;
  /** For people. */
  facts: Readonly<Record<string, unknown>>;
  tables: Readonly<Record<string, readonly object[]>>;
};

export const csvOf = ({ sums, tables }: Parts): string => toCsv({ sums: [sums], ...tables });

function toText(parts: Parts, format: 'text' | 'csv' | 'html' | undefined): readonly TextPart[] {
  if (format === 'csv') return csvOf(parts).split('\r\n');
  if (format === 'html') return [toHtml(parts)];
  const { title, facts, tables } = parts;
  return [title, facts, ...Object.entries(tables).flatMap(([name, rows]) => ['', name, rows])];
}

export const statementView = defineView({
  name: 'readStatement',
  tag: 'Views',
  path: '/teams/{team}/statement',
  summary: 'The statement of a team for a month',
  description: '`verify-ledger` proves that all statements add up to the ledger.',
  input: { team: z.string(), month: monthSchema, format: formatSchema },
  errors: ['not_found'],
  reply: ['The statement.', statementSchema],
  commands: [
    {
      name: 'statements team',
      description: 'print the statement of a team for a month',
      args: { team: ['<team>'] },
      flags,
      toText: (statement, { format }) => toText(partsOfStatement(statement), format),
    },
  ],
  read: ({ store, clock }: ViewDeps, { team, month = monthOf(clock.now()) }) =>
    readStatement(store.read, team, month, clock.now()),
});

const monthReportSchema = z
  .object({
    month: z.string(),
    providers: z
      .array(
        z.object({
          provider: z.string(),
          kind: z.enum(['deployment', 'volume']),
          hours: z.number(),
          revenue_usd: z.number(),
          provider_usd: z.number().meta({ description: "The same usage at the provider's prices." }),
          unpriced_hours: z.number().meta({ description: 'Hours for which its price is not known.' }),
        }),
      )
      .meta({ description: 'To check the invoice of each provider against.' }),
    days: z.array(
      z.object({
        day: z.string(),
        compute_usd: z.number(),
        storage_usd: z.number(),
        bad_debt_usd: z.number().meta({ description: 'What teams below zero owed at the end of the day.' }),
      }),
    ),
  })
  .meta({ id: 'MonthReport' });
export type MonthReport = z.output<typeof monthReportSchema>;

export async function readMonth(
  { ledger }: Pick<Reader, 'ledger'>,
  month: string,
  now: number,
): Promise<MonthReport> {
  const period = periodOf(month);
  const [sums, days] = await Promise.all([ledger.usageSums(period), revenueByDay(ledger, period, now)]);
  return {
    month,
    providers: sumByProvider(sums).map((sum) => ({
      provider: sum.providerId,
      kind: sum.subjectKind,
      hours: toHours(sum.ms),
      revenue_usd: usdFromMicroUsd(sum.amountMicroUsd),
      provider_usd: usdFromMicroUsd(sum.providerMicroUsd),
      unpriced_hours: toHours(sum.unpricedMs),
    })),
    days: days.map(({ day, computeMicroUsd, storageMicroUsd, badDebtMicroUsd }) => ({
      day: toTime(day).slice(0, 10),
      compute_usd: usdFromMicroUsd(computeMicroUsd),
      storage_usd: usdFromMicroUsd(storageMicroUsd),
      bad_debt_usd: usdFromMicroUsd(badDebtMicroUsd),
    })),
  };
}

export function partsOfMonth({ month, ...tables }: MonthReport): Parts {
  const revenue = tables.providers.reduce((sum, one) => sum + microUsdFromUsd(one.revenue_usd), 0);
  const cost = tables.providers.reduce((sum, one) => sum + microUsdFromUsd(one.provider_usd), 0);
  return {
    title: `Providers, revenue and bad debt in ${month}`,
    sums: { month, revenue_usd: usdFromMicroUsd(revenue), provider_usd: usdFromMicroUsd(cost) },
    facts: { revenue: toDollars(revenue), at_the_providers_prices: toDollars(cost) },
    tables,
  };
}

export const monthView = defineView({
  name: 'readMonth',
  tag: 'Views',
  path: '/statements',
  summary: 'A month: the sums of each provider, revenue and bad debt per day',
  description: 'A day ends at midnight UTC. Usage is charged at midnight, and when a rate changes.',
  input: { month: monthSchema, format: formatSchema },
  reply: ['The month.', monthReportSchema],
  commands: [
    {
      name: 'statements month',
      description: 'print what each provider should charge for a month, and revenue and bad debt per day',
      flags,
      toText: (report, { format }) => toText(partsOfMonth(report), format),
    },
  ],
  read: ({ store, clock }: ViewDeps, { month = monthOf(clock.now()) }) =>
    readMonth(store.read, month, clock.now()),
});
