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
