import { z } from 'zod';
import { type AnyList, type Column, type Columns, titleOf, toColumns } from '../columns.ts';
import { type Actor, allows } from '../model.ts';
import { kindOf, type Operation, splitInput } from '../operation.ts';
import { actionForm, actionLink } from './action-pages.ts';
import type { Page, PageRequest } from './deps.ts';
import type { Choice } from './fields.ts';
import { fieldsForm } from './fields-form.ts';
import {
  type Cells,
  cellOf,
  choice,
  count,
  facts,
  type Html,
  html,
  live,
  table,
  toTable,
  withQuery,
} from './parts.ts';

type Row = Record<string, unknown>;

/** What a page has besides what its view declares. */
export interface PageExtras<Deps> {
  /** The values of filters, and suggestions for the fields of forms, by their name. */
  choices?(deps: Deps): Promise<Readonly<Record<string, readonly Choice[]>>>;
  /** What precedes and follows the list or the facts. */
  above?(deps: Deps, request: PageRequest, reply: Row): Html | Promise<Html>;
  below?(deps: Deps, request: PageRequest, reply: Row): Html | Promise<Html>;
}

/** The path and the page of a view: its list with filters and pages, or its object. The actions are in its rows. */
export function viewPage<Deps>(
  view: Operation<Deps>,
  actions: readonly Operation<Deps>[],
  extras: PageExtras<Deps> = {},
): readonly [path: string, page: Page<Deps>] {
  const path = view.path.replace(/\{(\w+)\}/g, ':$1');
  return [
    path,
    view.detail === undefined ? listPage(view, actions, extras) : objectPage(view, actions, extras),
  ];
}

function listPage<Deps>(
  view: Operation<Deps>,
  actions: readonly Operation<Deps>[],
  { choices, above, below }: PageExtras<Deps>,
): Page<Deps> {
  const { list, path } = view;
  if (list === undefined) throw new Error(`the view ${view.name} declares no list`);
  const id = path.slice(1).replaceAll('/', '-');
  const forms = actions.filter(({ form }) => form?.beside === view.name);
  return async (deps, request) => {
    const wanted = readQuery(view, request);
    const [reply, values] = await Promise.all([read(view, deps, request, wanted), choices?.(deps)]);
    const rows = reply[list.rows] as Row[];
    const total = (reply['total'] as number | undefined) ?? rows.length;
    const rest = reply['next'] === undefined && total > rows.length ? total - rows.length : 0;
    const shownForms = forms.filter(({ needs }) => allows(request.session.role, needs));
    const first = withQuery(`/console${path}`, textsOf(wanted));
    return {
      title: list.title,
      body: html`<div class="head"><h1>${list.title}</h1><span class="soft">${count(total)}${list.about === undefined ? '' : `, ${list.about}`}</span></div>
${(await above?.(deps, request, reply)) ?? ''}${filters(view, wanted, values ?? {})}
${live(id, html`${rowsOf(list, rows, actionsIn(view, actions, request), request.now)}${rest === 0 ? '' : html`<p class="soft">… and ${count(rest)} more</p>`}`)}
${pager(first, request.query('after'), reply['next'] as string | null | undefined)}${shownForms.map((action) => fieldsForm(action, request, values ?? {}))}${(await below?.(deps, request, reply)) ?? ''}`,
    };
  };
}

function objectPage<Deps>(
  view: Operation<Deps>,
  actions: readonly Operation<Deps>[],
  { above, below }: PageExtras<Deps>,
): Page<Deps> {
  const { detail } = view;
  if (detail === undefined) throw new Error(`the view ${view.name} declares no facts`);
  return async (deps, request) => {
    const { now, params } = request;
    const reply = await read(view, deps, request, params).catch(noneIfNotFound);
    if (reply === null) return null;
    const title = detail.title(reply);
    const buttons = actionsIn(view, actions, request)?.cell(reply);
    return {
      title,
      body: html`<div class="head"><h1>${title}</h1>${buttons ?? ''}</div>
${(await above?.(deps, request, reply)) ?? ''}${live('facts', declaredFacts(detail.facts, reply, now))}
${(detail.lists ?? []).map((list) => {
  const inRows = actionsIn({ name: `${view.name}.${list.rows}` }, actions, request);
  const rows = rowsOf(list, reply[list.rows] as Row[], inRows, now);
  return live(list.rows, html`<h2>${list.title}</h2>${rows}`);
})}${(await below?.(deps, request, reply)) ?? ''}`,
    };
  };
}

/** The facts that columns declare. */
export function declaredFacts<Of extends object>(columns: Columns<Of>, of: Of, now: number): Html {
  return facts(
    (toColumns(columns as AnyList['columns']) as Column<Of>[]).map(
      (column) => [titleOf(column), cellOf(column, of, now)] as const,
    ),
  );
}

/** The table of a view's list, for some of its rows on another page; `fields`: only these columns. */
export function listTable(
  { list }: { list?: AnyList },
  rows: readonly object[],
  now: number,
  fields?: readonly string[],
): Html {
  if (list === undefined) return html``;
  const columns = toColumns(list.columns).filter(({ field }) => fields?.includes(field) ?? true);
  return rowsOf({ ...list, columns }, rows as Row[], undefined, now);
}

/** On a phone a row has two lines. */
function rowsOf(
  { columns, none }: Pick<AnyList, 'columns' | 'none'>,
  rows: readonly Row[],
  buttons: Cells<Row> | undefined,
  now: number,
): Html {
  const cells: Cells<Row>[] = toTable(toColumns(columns), now);
  return table(buttons === undefined ? cells : [...cells, buttons], rows, none, now, 'lines');
}

async function read<Deps>(
  view: Operation<Deps>,
  deps: Deps,
  { session }: PageRequest,
  input: Readonly<Record<string, unknown>>,
): Promise<Row> {
  const actor: Actor = { name: session.operator, source: 'console', address: null };
  return (await view.perform(deps, actor, input)) as Row;
}

function noneIfNotFound(error: unknown): null {
  if (error instanceof Error && 'status' in error && error.status === 404) return null;
  throw error;
}

/** The input of the view from the address of the page. What is invalid is left out. */
function readQuery<Deps>(view: Operation<Deps>, { query }: PageRequest): Record<string, unknown> {
  const given = Object.entries(splitInput(view).rest).flatMap(([name, schema]) => {
    const text = query(name);
    const kind = kindOf(name, schema);
    const value = kind === 'count' ? Number(text) : kind === 'time' ? toUtc(text) : text;
    const parsed = schema.safeParse(value);
    return text !== undefined && parsed.success ? [[name, parsed.data]] : [];
  });
  return { ...view.list?.usual, ...Object.fromEntries(given) };
}

/** A time of a form, which has no zone. */
function toUtc(text: string | undefined): string | undefined {
  return text !== undefined && /^[\d-]+T\d\d:\d\d$/.test(text) ? `${text}:00Z` : text;
}

const OF_PAGES: ReadonlySet<string> = new Set(['after', 'limit']);

function textsOf(wanted: Readonly<Record<string, unknown>>): Record<string, string | undefined> {
  const shown = Object.entries(wanted).filter(([name]) => !OF_PAGES.has(name));
  return Object.fromEntries(
    shown.map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  );
}

/** A form with a field for each filter of the view; nothing if it has none. */
function filters<Deps>(
  view: Operation<Deps>,
  wanted: Readonly<Record<string, unknown>>,
  choices: Readonly<Record<string, readonly Choice[]>>,
): Html | '' {
  const { path } = view;
  const fields = Object.entries(splitInput(view).rest)
    .filter(([name]) => !OF_PAGES.has(name))
    .sort(([a], [b]) => Number(b === 'q') - Number(a === 'q'));
  if (fields.length === 0) return '';
  const texts = textsOf(wanted);
  return html`<form class="card filter" action="/console${path}">${fields.map(([name, schema]) =>
    filter(name, schema, texts[name], choices[name], view.list?.usual?.[name]),
  )}<button class="primary">Find</button> <a class="button" href="/console${path}">Clear</a></form>`;
}

function filter(
  name: string,
  schema: z.ZodType,
  value: string | undefined,
  choices: readonly Choice[] | undefined,
  usual: unknown,
): Html | '' {
  const title = titleOf({ field: name });
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  const known =
    inner instanceof z.ZodEnum ? inner.options.map((one) => [String(one), String(one)] as const) : choices;
  if (known === undefined)
    return name === 'q'
      ? html`<label class="field grow"><span>Text</span><input type="search" name="q" value="${value ?? ''}"></label>`
      : kindOf(name, schema) === 'time'
        ? html`<label class="field grow"><span>${title}, UTC</span><input type="datetime-local" name="${name}" value="${value?.slice(0, 16) ?? ''}"></label>`
        : html`<label class="field"><span>${title}</span><input name="${name}" value="${value ?? ''}"></label>`;
  const texts = new Map(known.filter(([one]) => one !== usual));
  if (known.length < 2 && value === undefined) return '';
  const chosen = value === usual ? undefined : value;
  return choice(
    name,
    title,
    [...texts.keys()],
    chosen,
    (one) => texts.get(one) ?? one,
    String(usual ?? 'any'),
  );
}

function pager(first: string, after: string | undefined, next: string | null | undefined): Html | '' {
  if (next === undefined || (next === null && after === undefined)) return '';
  const more = `${first}${first.includes('?') ? '&' : '?'}${new URLSearchParams({ after: next ?? '' })}`;
  return html`<nav class="pager" aria-label="Pages of the list">
${after === undefined ? '' : html`<a class="button" href="${first}">« First page</a>`}
${next === null ? '' : html`<a class="button" rel="next" href="${more}">Next »</a>`}
</nav>`;
}

function fieldsInRow<Deps>({ form }: Operation<Deps>): Html {
  return html`${(form?.inRows?.asks ?? []).map((name) => {
    const title = titleOf({ field: name });
    return html`<input name="${name}" maxlength="255" placeholder="${title}" aria-label="${title}"> `;
  })}`;
}

/** Links to what is about alarms besides the open ones. */
export const belowAlarms = (): Html =>
  html`<p><a class="button" href="/console/alarms/ended">Alarms that ended</a> <a class="button" href="/console/alarms/routes">Who is told</a></p>`;

/** A column with the actions that have a place in the rows of the view. */
function actionsIn<Deps>(
  { name }: Pick<Operation<Deps>, 'name'>,
  actions: readonly Operation<Deps>[],
  { session }: PageRequest,
): Cells<Row> | undefined {
  const here = actions.filter(({ form, needs }) => form?.inRows?.of === name && allows(session.role, needs));
  if (here.length === 0) return undefined;
  const cell = (row: Row): Html | '' => {
    const buttons = here.map((action) => {
      const fields = action.form?.inRows?.fields(row as never);
      if (fields === undefined) return '';
      const isPlanned = (action.dryRun ?? action.form?.preview) !== undefined;
      return isPlanned
        ? actionLink(action, action.form?.button ?? '', fields)
        : actionForm(action, session.csrf, fields, { content: fieldsInRow(action) });
    });
    return buttons.every((one) => one === '') ? '' : html`${buttons}`;
  };
  return { head: 'Action', cell };
}
