import { html } from 'hono/html';
import {
  type Column as Declared,
  type Kind,
  kindOfValue,
  type Tone,
  textOf,
  titleOf,
  valueIn,
} from '../columns.ts';
import { count, span } from '../views/values.ts';

export type Html = ReturnType<typeof html>;

export type { Tone };
export { html };

export function badge(text: unknown, tone: Tone): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/** Invisible characters that can alter how text is read. Joiners, which scripts and emoji need, are allowed. */
const UNSEEN = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--[\u200c\u200d]]/gv;

/** Renders text from outside: escaped, its invisible characters shown, and its direction isolated. */
export function given(text: string | null | undefined): Html | '' {
  return text === null || text === undefined || text === ''
    ? ''
    : html`<bdi>${text.replace(UNSEEN, toEscape)}</bdi>`;
}

const MAX_NAME = 255;

/** Renders a name from a user or a platform, cut at 255 characters. */
export function named(name: string | null | undefined): Html | '' {
  return given(name && cutName(name));
}

export function cutName(name: string): string {
  return name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function toEscape(character: string): string {
  return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`;
}

/** Formats a time as `2026-11-23 03:12:45`, in UTC like the log. */
function moment(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

/** Renders a time as `12 min ago`, with the exact time as a tooltip. The script keeps it current. */
export function ago(time: number | string | null, now: number): Html | '' {
  if (time === null) return '';
  const at = typeof time === 'string' ? Date.parse(time) : time;
  const text = at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
  return html`<time class="nowrap" datetime="${new Date(at).toISOString()}" title="${moment(at)} UTC" data-ago>${text}</time>`;
}

export function clockTime(at: number): Html {
  return html`<time datetime="${new Date(at).toISOString()}">${moment(at)}</time>`;
}

export { count };

/** A field of the rows, which is shown by its name and its type; or a heading and its cells. */
export type Column<Row> = (keyof Row & string) | Cells<Row>;

export interface Cells<Row> {
  head: string;
  cell: (row: Row) => unknown;
  isNumber?: boolean;
  /** Shown only on a wide screen. */
  isWide?: boolean;
}

const TONES: Readonly<Record<string, Tone>> = {
  valid: 'good',
  sent: 'good',
  ok: 'good',
  done: 'good',
  waiting: 'wait',
  warning: 'wait',
  refused: 'wait',
  given_up: 'bad',
  broken: 'bad',
  failed: 'bad',
};

/** A column of the table: a declared one with those that are shown below its values. */
function toCells<Row>(column: Declared<Row>, below: readonly Declared<Row>[], now: number): Cells<Row> {
  return {
    head: titleOf(column),
    isWide: column.isWide ?? false,
    isNumber: column.kind === 'money' || column.kind === 'count',
    cell: (row) => {
      const cell = cellOf(column, row, now);
      const others = below.map((one) => [one, cellOf(one, row, now)] as const);
      const lines = others.filter(([, shown]) => shown !== '');
      if (lines.length === 0) return cell;
      return html`${cell}${lines.map(
        ([one, shown]) =>
          html`<span class="why">${one.title === undefined ? '' : `${one.title} `}${shown}</span>`,
      )}`;
    },
  };
}

/** The columns of a table for declared ones. */
export function toTable<Row>(columns: readonly Declared<Row>[], now: number): Cells<Row>[] {
  return columns
    .filter(({ under }) => under === undefined)
    .map((column) =>
      toCells(
        column,
        columns.filter(({ under }) => under === column.field),
        now,
      ),
    );
}

/** Shows the value of a column in a row; '' if it has none. */
export function cellOf<Row>(column: Declared<Row>, row: Row, now: number): unknown {
  const value = valueIn(row, column, now);
  const kind = kindOfValue(column, value);
  const shown = valueCell(kind, value, now);
  if (shown === '') return '';
  const tone = column.tone?.(row, now) ?? (kind === 'state' ? (TONES[String(value)] ?? 'none') : undefined);
  const marked = tone === undefined ? shown : badge(shown, tone);
  const page = column.page?.(row);
  return page === undefined ? marked : html`<a href="/console${page}">${marked}</a>`;
}

function valueCell(kind: Kind, value: unknown, now: number): unknown {
  if (value === null || value === undefined || value === '') return '';
  if (typeof value === 'number' && kind === 'count') return count(value);
  const text = textOf(kind, value);
  switch (kind) {
    case 'time':
      return ago(text, now);
    case 'moment':
      return clockTime(Date.parse(text));
    case 'id':
    case 'code':
      return html`<code>${named(text)}</code>`;
    case 'data':
      return text === '' ? '' : html`<span class="small">${given(text)}</span>`;
    case 'text':
      return given(text);
    default:
      return named(text);
  }
}

/**
 * Shows rows as a table. On a narrow screen each row becomes a block: a line for each cell, or with `lines` two lines,
 * of which the first has the first two columns. `empty` is the text of a table without rows. Times are shown by their
 * age at `now`.
 */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  empty: string,
  now = 0,
  layout: 'stack' | 'lines' = 'stack',
): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const all = columns.map((column) =>
    typeof column === 'string'
      ? { ...toCells({ field: column }, [], now), isNumber: typeof rows[0]?.[column] === 'number' }
      : column,
  );
  return html`<div class="scroll"><table class="${layout}"><thead><tr>${all.map(
    (column) => html`<th scope="col" class="${classOf(column)}">${column.head}</th>`,
  )}</tr></thead><tbody>${rows.map((row) => html`<tr>${all.map((column) => tableCell(column, row))}</tr>`)}</tbody></table></div>`;
}

function classOf<Row>({ isNumber, isWide }: Cells<Row>): string {
  return [isNumber && 'right', isWide && 'more'].filter(Boolean).join(' ');
}

/** An empty cell has no label, so that it is hidden when each row is a block. */
function tableCell<Row>(column: Cells<Row>, row: Row): Html {
  const content = column.cell(row);
  if (content === '' || content === null || content === undefined)
    return html`<td class="${classOf(column)}"></td>`;
  return html`<td data-label="${column.head}" class="${classOf(column)}"><span>${content}</span></td>`;
}

/** A list of names and values. Empty values are left out. */
export function facts(entries: readonly (readonly [string, unknown])[]): Html {
  return html`<dl class="facts">${entries.map(([name, value]) =>
    value === '' || value === null || value === undefined
      ? ''
      : html`<div><dt>${name}</dt><dd>${value}</dd></div>`,
  )}</dl>`;
}

/** A part of the page that is replaced when it changes. */
export function live(id: string, content: unknown, className = 'card'): Html {
  return html`<section id="${id}" class="${className}" data-live>${content}</section>`;
}

/** Returns a path with the non-empty parameters as its query. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const present = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  return present.length === 0 ? path : `${path}?${new URLSearchParams(present)}`;
}

/** A key figure at the top of a page. `href` links to its details. */
export function figure(
  value: string,
  name: string,
  { href, tone }: { href?: string; tone?: Tone | undefined } = {},
): Html {
  const content = html`<b>${value}</b><span>${name}</span>`;
  return href === undefined
    ? html`<div class="figure ${tone ?? ''}">${content}</div>`
    : html`<a class="figure ${tone ?? ''}" href="${href}">${content}</a>`;
}

/** A menu. A chosen value that is not one of `values` is added to it. */
export function choice(
  name: string,
  label: string,
  values: readonly string[],
  chosen: string | undefined,
  show: (value: string) => string = (value) => value,
  none = 'any',
): Html {
  const all = chosen === undefined || values.includes(chosen) ? values : [...values, chosen];
  return html`<label class="field"><span>${label}</span><select name="${name}"><option value="">${none}</option>${all.map(
    (value) =>
      value === chosen
        ? html`<option value="${value}" selected>${show(value)}</option>`
        : html`<option value="${value}">${show(value)}</option>`,
  )}</select></label>`;
}

/** A segment of a bar. `kind` is its colour. */
interface Share {
  kind: 'a' | 'b' | 'c' | 'd';
  value: number;
  name: string;
}

/** A bar whose segments add up to a whole. */
export function shareBar(shares: readonly Share[], label: string): Html {
  const whole = shares.reduce((sum, { value }) => sum + value, 0);
  let x = 0;
  const parts = shares.map(({ kind, value, name }) => {
    const width = whole === 0 ? 0 : (100 * value) / whole;
    const part = html`<rect class="${kind}" x="${x.toFixed(2)}" width="${width.toFixed(2)}" height="10"><title>${name}: ${value}</title></rect>`;
    x += width;
    return part;
  });
  return html`<svg class="bars" viewBox="0 0 100 10" height="10" preserveAspectRatio="none" role="img" aria-label="${label}">${parts}</svg>`;
}
