import { DAY_MS } from '../../ports/clock.ts';
import type { FigureReader, FigureRecord, FigureRow } from '../model.ts';
import { startOf } from './recorder.ts';
import { addRows, HOUR_MS } from './rows.ts';

/** The periods that are shown, and how long one point of them is. */
export const figureRanges = {
  '24h': { name: '24 hours', ms: DAY_MS, step: 'hour', stepMs: HOUR_MS },
  '7d': { name: '7 days', ms: 7 * DAY_MS, step: 'hour', stepMs: HOUR_MS },
  '90d': { name: '90 days', ms: 90 * DAY_MS, step: 'day', stepMs: DAY_MS },
} as const;
export type FigureRange = keyof typeof figureRanges;
export const rangeNames = Object.keys(figureRanges) as FigureRange[];

/** Numbers by the names of their columns. */
export type Values = Readonly<Record<string, number>>;

export const sumOf = (values: Values): number => Object.values(values).reduce((sum, value) => sum + value, 0);
export const toCount = (value: number): string => value.toLocaleString('en-US');
export const toUsd = (value: number): string =>
  value.toLocaleString('en-US', { style: 'currency', currency: 'USD' });

/** A figure that is drawn over time. */
export interface FigureSpec {
  name: string;
  title: string;
  unit: 'units' | 'USD' | 'USD per hour' | 's' | 'count';
  about: string;
  series: string;
  /** The meanings of the first texts of a row. A row with an empty text fits any filter. */
  labels: readonly string[];
  /** Absent: the columns that the values have. */
  columns?: readonly string[];
  /** How the columns are drawn, and which of them; default: all. */
  shape: 'area' | 'bars' | 'lines';
  drawn?: readonly string[];
  /** Reads the values from the rows of each subject. Null: nothing is known. */
  read(subjects: readonly (readonly FigureRow[])[]): Values | null;
  /** The whole period in one phrase. */
  summarise(whole: Values): string;
}

/** Only figures with this subject and these texts. */
export interface FigureFilter {
  subject?: string | undefined;
  labels?: Readonly<Record<string, string | undefined>>;
}

export interface FigurePoint {
  at: number;
  /** Null: no server recorded it. */
  values: Values | null;
}

/** A figure over a period. */
export interface Figure {
  spec: FigureSpec;
  range: FigureRange;
  columns: readonly string[];
  stepMs: number;
  from: number;
  until: number;
  points: FigurePoint[];
  /** By hour in 24 hours, else by day. */
  table: FigurePoint[];
  whole: Values | null;
}

/** Most columns of a figure whose columns are found in its values. */
const MOST_COLUMNS = 7;

/** Reads a figure up to now. Its last point is not complete yet. */
export async function readFigure(
  reader: Pick<FigureReader, 'list'>,
  spec: FigureSpec,
  { range, now, filter = {} }: { range: FigureRange; now: number; filter?: FigureFilter },
): Promise<Figure> {
  const { ms, step, stepMs } = figureRanges[range];
  const until = startOf(stepMs, now) + stepMs;
  const from = until - ms;
  const found = await reader.list({ step, series: spec.series, subject: filter.subject, from, until });
  const records = found.flatMap((record) => {
    const rows = record.rows.filter((row) => isWanted(spec, row, filter.labels));
    return rows.length === 0 && record.rows.length > 0 && filter.labels !== undefined
      ? []
      : [{ ...record, rows }];
  });
  const pointsOf = (lengthMs: number): FigurePoint[] => {
    const byTime = Map.groupBy(records, ({ at }) => startOf(lengthMs, at));
    const first = startOf(lengthMs, from);
    return Array.from({ length: Math.ceil((until - first) / lengthMs) }, (_, index) => {
      const at = first + index * lengthMs;
      return { at, values: readValues(spec, byTime.get(at) ?? []) };
    });
  };
  const whole = readValues(spec, records);
  return {
    spec,
    range,
    columns: spec.columns ?? columnsOf(whole),
    stepMs,
    from,
    until,
    points: pointsOf(stepMs),
    table: pointsOf(range === '24h' ? HOUR_MS : DAY_MS),
    whole,
  };
}

function isWanted({ labels }: FigureSpec, row: FigureRow, wanted: FigureFilter['labels'] = {}): boolean {
  return labels.every((label, index) => {
    const value = wanted[label];
    return value === undefined || row[index] === '' || row[index] === value;
  });
}

function readValues(spec: FigureSpec, records: readonly FigureRecord[]): Values | null {
  if (records.length === 0) return null;
  const bySubject = Map.groupBy(records, ({ subject }) => subject);
  const rowsOf = (of: readonly FigureRecord[]): readonly FigureRow[] =>
    of.length === 1 && of[0] !== undefined ? of[0].rows : addRows(of.flatMap(({ rows }) => rows));
  const values = spec.read([...bySubject.values()].map(rowsOf));
  // No figure is known more exactly than to a micro-USD.
  const rounded = Object.entries(values ?? {}).map(([name, value]) => [name, Math.round(value * 1e6) / 1e6]);
  return values && Object.fromEntries(rounded);
}

/** The largest columns first. */
function columnsOf(whole: Values | null): string[] {
  return Object.entries(whole ?? {})
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_COLUMNS)
    .map(([name]) => name);
}

/** Formats a figure as CSV. A point that no server recorded has empty cells. */
export function toCsv({ columns, points }: Pick<Figure, 'columns' | 'points'>): string {
  const lines = points.map(({ at, values }) => [
    new Date(at).toISOString(),
    ...columns.map((column) => (values === null ? '' : String(values[column] ?? ''))),
  ]);
  return [['at', ...columns], ...lines]
    .map(
      (cells) =>
        `${cells.map((cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\n`,
    )
    .join('');
}

const KEPT_MS = 60_000;
const MOST_KEPT = 200;
const kept = new WeakMap<object, Map<string, { at: number; figure: Promise<Figure> }>>();

/**
 * Keeps figures for a minute: pages are read again every few seconds. `owner`: what they are read from. `key` names the
 * figure.
 */
export function keepFigure(
  owner: object,
  key: string,
  now: number,
  read: () => Promise<Figure>,
): Promise<Figure> {
  const figures = kept.get(owner) ?? new Map();
  kept.set(owner, figures);
  const known = figures.get(key);
  if (known !== undefined && Math.abs(now - known.at) < KEPT_MS) return known.figure;
  if (figures.size >= MOST_KEPT) figures.clear();
  const figure = read().catch((error) => {
    figures.delete(key);
    throw error;
  });
  figures.set(key, { at: now, figure });
  return figure;
}
