import {
  type Figure,
  type FigureFilter,
  type FigureRange,
  type FigureSpec,
  figureRanges,
  keepFigure,
  rangeNames,
  readFigure,
} from '../figures/figure.ts';
import type { FigureReader } from '../model.ts';
import { chart, colourOf, drawnColumns, toAmount } from './chart.ts';
import { type Html, html, live, table } from './parts.ts';

/** The range that a page's query asks for; default: 7 days. */
export function rangeOf(query: (name: string) => string | undefined): FigureRange {
  return rangeNames.find((name) => name === query('range')) ?? '7d';
}

/** Links to the page with other ranges. `path` may have a query. */
export function rangeLinks(path: string, shown: FigureRange): Html {
  const links = rangeNames.map((range) => {
    const { name } = figureRanges[range];
    const href = `${path}${path.includes('?') ? '&' : '?'}range=${range}`;
    return range === shown ? html`<b>${name}</b>` : html`<a href="${href}">${name}</a>`;
  });
  return html`<nav class="ranges small" aria-label="Period">${links}</nav>`;
}

interface Shown {
  reader: Pick<FigureReader, 'list'>;
  range: FigureRange;
  now: number;
  /** What the figures are kept with for a minute; default: the reader. */
  keptBy?: object;
  /** The fields of the API that filter so: they name the figures, and are in the links to CSV and JSON. */
  query?: Readonly<Record<string, string>>;
  filter?: FigureFilter;
}

/** A card for each figure: its chart, and the same numbers as a table. */
export async function figureCards(specs: readonly FigureSpec[], shown: Shown): Promise<Html> {
  const { range, now, filter = {}, query = {} } = shown;
  const figures = await Promise.all(
    specs.map((spec) =>
      keepFigure(shown.keptBy ?? shown.reader, JSON.stringify([spec.name, range, query]), now, () =>
        readFigure(shown.reader, spec, { range, now, filter }),
      ),
    ),
  );
  return html`<div class="columns charts">${figures.map((figure) => {
    const id = ['figure', figure.spec.name, ...Object.values(query)].join('-').replace(/[^\w-]/g, '_');
    return live(id, figureCard(figure, id, query));
  })}</div>`;
}

function figureCard(figure: Figure, id: string, query: Readonly<Record<string, string>>): Html {
  const { spec, range, columns, whole } = figure;
  const { name } = figureRanges[range];
  const summary = whole === null ? 'nothing recorded yet' : spec.summarise(whole);
  const asked = String(new URLSearchParams({ figure: spec.name, range, ...query }));
  return html`<h2>${spec.title}, ${name}: ${summary}</h2>${chart(figure, id)}
<p class="key">${drawnColumns(figure).map(
    (column, index) => html`<span class="${colourOf(index)}">${column.replaceAll('_', ' ')}</span>`,
  )}</p>
<details id="${id}-table"><summary class="small">Numbers</summary><p class="small">${spec.about} Times are UTC. <a href="/console/figures.csv?${asked}" download="${spec.name}-${range}.csv">CSV</a>; as JSON: <code>GET /operator/v1/figures?${asked}</code></p>${table(
    [
      {
        head: 'From',
        cell: ({ at }: Figure['table'][number]) => new Date(at).toISOString().slice(0, 16).replace('T', ' '),
      },
      ...columns.map((column) => ({
        head: column.replaceAll('_', ' '),
        cell: ({ values }: Figure['table'][number]) =>
          values?.[column] === undefined ? '–' : toAmount(spec.unit, values[column]),
        isNumber: true,
      })),
    ],
    figure.table.toReversed(),
    'Nothing is recorded yet.',
  )}</details>`;
}
