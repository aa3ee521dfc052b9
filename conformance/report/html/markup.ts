import { printable } from '../../text/printable.ts';

/** HTML that is safe to embed; only `html` creates it. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Markup | string | number | undefined | readonly Part[];

/** An HTML template. Values are escaped unless they were created by `html`. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.map((text, index) => `${text}${render(parts[index])}`).join(''));
}

/** A section that is closed at first. */
export function folded(heading: Markup, content: Markup): Markup {
  return html`<details class="fold"><summary>${heading}</summary>${content}</details>`;
}

function render(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return part.map(render).join('');
  return escapeText(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text or a quoted attribute value. Invisible characters become escapes; line ends stay. */
function escapeText(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line, Number.POSITIVE_INFINITY))
    .join('\n')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
