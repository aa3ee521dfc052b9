import { type Figure, type FigureSpec, toUsd } from '../figures/figure.ts';
import { type Html, html } from './parts.ts';

/** In units of the drawing, which is as wide as its card. */
const WIDTH = 640;
const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const PLOT_WIDTH = WIDTH - LEFT - 6;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
const GRID_LINES = 4;

/** The colour of a column: see console.css. */
export const colourOf = (index: number): string => `c${index + 1}`;

export function drawnColumns({ spec, columns }: Pick<Figure, 'spec' | 'columns'>): readonly string[] {
  return spec.drawn ?? columns;
}

/** Formats a value with its unit. */
export function toAmount(unit: FigureSpec['unit'], value: number): string {
  if (unit === 'USD') return toUsd(value);
  if (unit === 'USD per hour') return `${toUsd(value)}/h`;
  const rounded = value.toLocaleString('en-US', { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 0 });
  return unit === 's' ? `${rounded} s` : rounded;
}

interface Scales {
  x: (at: number) => number;
  y: (value: number) => number;
  top: number;
}

/** Draws a figure. Where nothing was recorded there is a gap. `id` is unique on the page. */
export function chart(figure: Figure, id: string): Html {
  const { spec, from, until, points } = figure;
  const isStacked = spec.shape !== 'lines';
  const drawn = drawnColumns(figure);
  const heights = points.map(({ values }) => {
    const known = drawn.map((column) => Math.max(0, values?.[column] ?? 0));
    return isStacked ? known.reduce((sum, value) => sum + value, 0) : Math.max(0, ...known);
  });
  // What is counted has whole numbers on its axis.
  const least = spec.unit === 'units' || spec.unit === 'count' ? GRID_LINES : 0;
  const top = niceTop(Math.max(least, ...heights));
  const scales: Scales = {
    x: (at) => LEFT + (PLOT_WIDTH * (at - from)) / (until - from),
    y: (value) => TOP + PLOT_HEIGHT * (1 - Math.max(0, value) / top),
    top,
  };
  const about = `${spec.title} in ${spec.unit}, from ${dayOf(from)} to ${dayOf(until - 1)} UTC. ${figure.whole === null ? 'Nothing was recorded.' : spec.summarise(figure.whole)}`;
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="${id}-t ${id}-d"><title id="${id}-t">${spec.title}</title><desc id="${id}-d">${about}</desc>
${yAxis(spec.unit, scales)}${xAxis(figure, scales)}${isStacked ? stacks(figure, drawn, scales) : lines(figure, drawn, scales)}
</svg>`;
}

/** The next of 1, 2, 4, 5, 8 or 10 times a power of ten: each divides well by the number of grid lines. */
function niceTop(most: number): number {
  if (most <= 0) return GRID_LINES;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 4, 8].find((step) => step * power >= most) ?? 10);
}

function yAxis(unit: FigureSpec['unit'], { y, top }: Scales): Html[] {
  return Array.from({ length: GRID_LINES + 1 }, (_, index) => {
    const value = (top * index) / GRID_LINES;
    const at = y(value).toFixed(1);
    return html`<line class="grid" x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${at}" y2="${at}"/><text x="${LEFT - 6}" y="${at}" dy="4" text-anchor="end">${tickOf(unit, value)}</text>`;
  });
}

function tickOf(unit: FigureSpec['unit'], value: number): string {
  const short = value.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 2 });
  if (unit.startsWith('USD')) return `$${short}`;
  return unit === 's' ? `${short} s` : short;
}

/** Marks hours of a day, days of a week, or every second Monday. */
function xAxis({ range, from, until, stepMs }: Figure, { x }: Scales): Html[] {
  const ticks: number[] = [];
  for (let at = from; at < until; at += stepMs) if (isMarked(range, new Date(at))) ticks.push(at);
  return ticks.map((at) => {
    const text = range === '24h' ? new Date(at).toISOString().slice(11, 16) : dayOf(at).slice(5);
    return html`<line class="grid" x1="${x(at).toFixed(1)}" x2="${x(at).toFixed(1)}" y1="${TOP + PLOT_HEIGHT}" y2="${TOP + PLOT_HEIGHT + 4}"/><text x="${x(at).toFixed(1)}" y="${HEIGHT - 6}" text-anchor="middle">${text}</text>`;
  });
}

function isMarked(range: Figure['range'], at: Date): boolean {
  if (range === '24h') return at.getUTCHours() % 4 === 0;
  if (range === '7d') return at.getUTCHours() === 0;
  return Math.floor(at.getTime() / 86_400_000) % 14 === 4;
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** One bar for each point, with its columns one on the other; of an area, the bars touch. */
function stacks({ spec, points, stepMs }: Figure, drawn: readonly string[], { x, y }: Scales): Html[] {
  const gap = spec.shape === 'area' ? 0 : 0.15;
  const width = (x(stepMs) - x(0)) * (1 - gap);
  return drawn.map((column, index) => {
    const path = points
      .map(({ at, values }) => {
        if (values === null) return '';
        const below = drawn.slice(0, index).reduce((sum, other) => sum + Math.max(0, values[other] ?? 0), 0);
        const high = Math.max(0, values[column] ?? 0);
        if (high === 0) return '';
        const [low, edge] = [y(below), y(below + high)];
        return `M${x(at).toFixed(1)} ${low.toFixed(1)}V${edge.toFixed(1)}h${width.toFixed(2)}V${low.toFixed(1)}Z`;
      })
      .join('');
    return html`<path class="${colourOf(index)}" d="${path}"/>`;
  });
}

/** A line through the middle of each point. A point between two gaps is a dot. */
function lines({ points, stepMs }: Figure, drawn: readonly string[], { x, y }: Scales): Html[] {
  return drawn.map((column, index) => {
    let isDrawing = false;
    const path = points
      .map(({ at, values }) => {
        const value = values?.[column];
        const command = isDrawing ? 'L' : 'M';
        isDrawing = value !== undefined;
        if (value === undefined) return '';
        const place = `${x(at + stepMs / 2).toFixed(1)} ${y(value).toFixed(1)}`;
        return command === 'M' ? `M${place}h0` : `L${place}`;
      })
      .join('');
    return html`<path class="line ${colourOf(index)}" d="${path}"/>`;
  });
}
