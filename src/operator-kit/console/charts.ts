import { type Html, html } from './parts.ts';

/** A segment of a bar. `kind` is its colour. */
export interface Share {
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

const WIDTH = 480;
const HEIGHT = 88;

/** A bar chart over time. Each bar has two parts; `values` are ordered from oldest to newest. */
export function columns(values: readonly { a: number; b: number; title: string }[], label: string): Html {
  const most = Math.max(1, ...values.map(({ a, b }) => a + b));
  const step = WIDTH / Math.max(1, values.length);
  const scale = HEIGHT / most;
  const bars = values.map(({ a, b, title }, index) => {
    const x = (index * step + 1).toFixed(1);
    const width = Math.max(1, step - 2).toFixed(1);
    const rect = (kind: string, from: number, to: number): Html =>
      html`<rect class="${kind}" x="${x}" y="${(HEIGHT - to * scale).toFixed(1)}" width="${width}" height="${((to - from) * scale).toFixed(1)}"/>`;
    return html`<g><title>${title}</title><rect class="blank" x="${x}" y="0" width="${width}" height="${HEIGHT}" fill="transparent"/>${a > 0 ? rect('a', 0, a) : ''}${b > 0 ? rect('b', a, a + b) : ''}</g>`;
  });
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT + 1}" role="img" aria-label="${label}">${bars}<rect class="c" x="0" y="${HEIGHT}" width="${WIDTH}" height="1"/></svg>`;
}
