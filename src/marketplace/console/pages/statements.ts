import { count, facts, type Html, html, live, table } from '../../../operator-kit/console/parts.ts';
import { monthOf } from '../../ledger/statements.ts';
import { teamOf } from '../../model/own-rows.ts';
import { toHtml } from '../../operate/views/statement-text.ts';
import {
  csvOf,
  type Parts,
  partsOfMonth,
  partsOfStatement,
  readMonth,
  readStatement,
} from '../../operate/views/statements.ts';
import type { Page } from '../deps.ts';

const MOST_ROWS = 500;
const MONTH = /^[1-9]\d{3}-(0[1-9]|1[0-2])$/;

function monthIn(text: string | undefined, now: number): string {
  return text !== undefined && MONTH.test(text) ? text : monthOf(now);
}

/** What each provider should charge for a month, and revenue and bad debt per day. */
export const monthPage: Page = async ({ store: { read } }, { query, now }) => {
  const month = monthIn(query('month'), now);
  return pageOf(partsOfMonth(await readMonth(read, month, now)), month, '/console/statements');
};

/** The statement of a team for a month. */
export const statementPage: Page = async ({ store: { read } }, { params, query, now }) => {
  const team = await teamOf(read.teams, params['id'] ?? '');
  if (team === null) return null;
  const month = monthIn(query('month'), now);
  const parts = partsOfStatement(await readStatement(read, team.id, month, now));
  return pageOf(parts, month, `/console/statements/${encodeURIComponent(team.id)}`);
};

function pageOf(parts: Parts, month: string, path: string) {
  const { title, tables } = parts;
  const file = title.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const sums = Object.entries(parts.facts).map(
    ([name, value]) => [name.replaceAll('_', ' '), String(value)] as const,
  );
  return {
    title,
    body: html`<div class="head"><h1>${title}</h1></div>
<form class="card filter" action="${path}"><label class="field"><span>Month (UTC)</span><input name="month" value="${month}" pattern="[0-9]{4}-[0-9]{2}"></label><button class="primary">Show</button>
${download(`${file}.html`, 'text/html', toHtml(parts), 'Page to print')}${download(`${file}.csv`, 'text/csv', csvOf(parts), 'CSV')}${download(`${file}.json`, 'application/json', JSON.stringify({ ...parts.sums, ...tables }), 'JSON')}</form>
${live(
  'statement',
  html`${facts(sums)}
${Object.entries(tables).map(
  ([name, rows]) =>
    html`<h2>${name}</h2>${table(Object.keys(rows[0] ?? {}) as never[], rows.slice(0, MOST_ROWS) as never[], 'None.')}${
      rows.length > MOST_ROWS
        ? html`<p class="soft">… and ${count(rows.length - MOST_ROWS)} more: the files above have all.</p>`
        : ''
    }`,
)}`,
)}`,
  };
}

function download(file: string, type: string, text: string, name: string): Html {
  return html`<a class="button" download="${file}" href="data:${type};charset=utf-8,${encodeURIComponent(text)}">${name}</a>`;
}
