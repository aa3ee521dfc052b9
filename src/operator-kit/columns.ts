import { usdToDollars } from '../contract/values.ts';

/**
 * The state of an item: good · under way · waiting or nearly wrong · wrong · neutral. Colour is never the only sign.
 */
export type Tone = 'good' | 'busy' | 'wait' | 'bad' | 'none';

/**
 * How a value is shown. `time`: its age; the exact time with `-o wide` and in data · `moment`: always the exact time ·
 * `id`: in the tables of the command line shortened to what is unique there · `name`: chosen by tenants or platforms.
 */
export type Kind =
  | 'time'
  | 'moment'
  | 'money'
  | 'count'
  | 'state'
  | 'flag'
  | 'id'
  | 'code'
  | 'name'
  | 'text'
  | 'data';

/** A column of a list, or a fact about one object. What is absent follows from the name and the value of the field. */
export interface Column<Row = Record<string, unknown>, Field = keyof Row & string> {
  field: Field;
  /** Default: the words of the field's name. */
  title?: string;
  kind?: Kind;
  /** On the command line only with `-o wide`, and in the console only on a wide screen. */
  isWide?: true;
  /** The field below whose value the console shows this one. */
  under?: Field;
  /** A text in place of the value of the field. */
  text?(row: Row, now: number): string | number | null;
  /** The page of the value, below `/console`. */
  page?(row: Row): string | undefined;
  /** Shows it as a badge. Without one, a state has the tone that its word has everywhere. */
  tone?(row: Row, now: number): Tone | undefined;
}

export type Columns<Row, Field = keyof Row & string> = readonly (Field | Column<Row, Field>)[];

/** A list in a reply: a table of the command line and of the console. */
export interface ListIn<Rows, Row, Field = keyof Row & string> {
  /** The field of the reply that has the rows. */
  rows: Rows;
  title: string;
  columns: Columns<Row, Field>;
  /** The sentence for a list without rows. */
  none: string;
  /** A sentence beside the title of its page. */
  about?: string;
  /** Input of the view that its page has by default. */
  usual?: Readonly<Record<string, unknown>>;
}

/** The rows that are in a field of a reply. */
export type RowOf<Reply, Rows extends string> =
  Reply extends Record<Rows, readonly (infer Row extends object)[]> ? Row : never;

/** The lists that a reply may have. */
type ListOf<Reply> = {
  [Rows in keyof Reply & string]: ListIn<Rows, RowOf<Reply, Rows>>;
}[keyof Reply & string];

/** How one object is shown: facts, then the lists in it. */
export interface DetailOf<Reply, Field = keyof Reply & string, List = ListOf<Reply>> {
  title(reply: Reply): string;
  facts: Columns<Reply, Field>;
  lists?: readonly List[];
}

/** A list or an object of any view. */
export type AnyList = ListIn<string, Record<string, unknown>, string>;
export type AnyDetail = DetailOf<Record<string, unknown>, string, AnyList>;

export function toColumns(columns: AnyList['columns']): Column[] {
  return columns.map((column) => (typeof column === 'string' ? { field: column } : column));
}

/** A column for each field. */
export function columnsOf(row: object, hidden: readonly string[] = []): Column[] {
  return Object.keys(row)
    .filter((field) => !hidden.includes(field))
    .map((field) => ({ field }));
}

/** The heading of a field: `last used` of `last_used_at`. */
export function headOf(name: string): string {
  return name.replace(/^has_|_(at|id|usd)$/g, '').replaceAll('_', ' ');
}

/** Whether a field is an amount in US dollars. */
function isUsd(name: string): boolean {
  return /(^|_)usd(_|$)/.test(name);
}

const NAMES: ReadonlySet<string> = new Set(['name', 'account', 'label', 'host', 'owner', 'actor', 'by']);
const TEXTS: ReadonlySet<string> = new Set(['memo', 'problem', 'reason', 'text', 'error', 'detail']);
const CODES = /^(id|key|ref)$|_(id|ref|key)$/;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** The kind of a value: as its column says, or by the name of the field and its type. */
export function kindOfValue({ field, kind }: Pick<Column, 'field' | 'kind'>, value: unknown): Kind {
  if (kind !== undefined) return kind;
  if (typeof value === 'boolean') return 'flag';
  if (typeof value === 'number') return isUsd(field) ? 'money' : 'count';
  if (typeof value === 'object') return 'data';
  if (NAMES.has(field)) return 'name';
  if (/^(state|status|verdict|outcome)$/.test(field)) return 'state';
  if (TEXTS.has(field)) return 'text';
  if (CODES.test(field)) return 'code';
  if (!ISO_TIME.test(String(value))) return 'text';
  return field === 'at' || field === 'time' ? 'moment' : 'time';
}

/** The value of a column. */
export function valueIn<Row>(row: Row, { field, text }: Column<Row>, now: number): unknown {
  return text === undefined ? row[field] : text(row, now);
}

/** Text for a value that is not a time, an id or a name. */
export function textOf(kind: Kind, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return kind === 'money' ? usdToDollars(value) : String(value);
  if (Array.isArray(value)) return value.map((one) => textOf('data', one)).join(', ');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([key, one]) => `${key}=${typeof one === 'string' ? one : JSON.stringify(one)}`)
    .join(' ');
}

const PAGES: Readonly<Record<string, string>> = {
  inst: 'instances',
  dep: 'deployments',
  team: 'teams',
};

/** The page of the object with this id, below `/console`. Undefined if it has none. */
export function linkOfId(id: string | null): string | undefined {
  const page = PAGES[id?.split('-', 1)[0] ?? ''];
  return page === undefined || !id?.includes('-') ? undefined : `/${page}/${encodeURIComponent(id)}`;
}

/** Such as `Last used` of `last_used_at`. */
export function titleOf({ field, title }: Pick<Column, 'field' | 'title'>): string {
  const words = title ?? headOf(field);
  if (/^.[A-Z]/.test(words)) return words;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`.replace(/^Usd\b/, 'USD');
}

const UNITS = [
  [31_536_000_000, 'y'],
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

/** A duration in one or two units, as kubectl has it: `45s`, `3m20s`, `12m`, `2d4h`, `12d`. */
export function shortSpan(ms: number): string {
  const at = UNITS.findIndex(([size]) => ms >= size);
  const [size, unit] = UNITS[at] ?? [1_000, 's'];
  const first = Math.floor(ms / size);
  const next = UNITS[at + 1];
  if (at < 0 || next === undefined || first >= 10) return `${first}${unit}`;
  const rest = Math.floor((ms % size) / next[0]);
  return rest === 0 ? `${first}${unit}` : `${first}${unit}${rest}${next[1]}`;
}
