import { headOf } from '../../../operator-kit/columns.ts';

type Tables = Readonly<Record<string, readonly object[]>>;

/** CSV as in RFC 4180, one table with its heads after the other. */
export function toCsv(tables: Tables): string {
  return Object.entries(tables)
    .flatMap(([table, rows]) => [
      ...(rows[0] === undefined ? [] : [['table', ...Object.keys(rows[0])]]),
      ...rows.map((row) => [table, ...Object.values(row)]),
    ])
    .map((row) => row.map(toCell).join(','))
    .join('\r\n');
}

/** A spreadsheet runs a text that begins like a formula. Names are from users. */
function toCell(value: unknown): string {
  const text = value === null ? '' : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const STYLE =
  'body{font:14px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse;width:100%;margin:1rem 0}' +
  'th,td{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #ccc;overflow-wrap:anywhere}' +
  'thead{display:table-header-group}tr{break-inside:avoid}@page{margin:15mm}@media print{body{margin:0;font-size:10px}}';

/** A page of its own, to print or to send. */
export function toHtml({
  title,
  facts,
  tables,
}: {
  title: string;
  facts: Readonly<Record<string, unknown>>;
  tables: Tables;
}): string {
  const row = (cells: readonly unknown[], tag = 'td') =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  const table = ([name, rows]: [string, readonly object[]]) =>
    rows[0] === undefined
      ? ''
      : `<h2>${escaped(name)}</h2><table><thead>${row(Object.keys(rows[0]).map(headOf), 'th')}</thead><tbody>${rows
          .map((one) => row(Object.values(one)))
          .join('')}</tbody></table>`;
  const sums = Object.entries(facts).map(([name, value]) => row([name.replaceAll('_', ' '), value]));
  return (
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style>` +
    `<h1>${escaped(title)}</h1><table><tbody>${sums.join('')}</tbody></table>` +
    `${Object.entries(tables).map(table).join('')}</html>`
  );
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(value: unknown): string {
  return String(value ?? '').replace(/[&<>"]/g, (character) => ESCAPES[character] ?? '');
}
