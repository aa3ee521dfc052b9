import { printable } from '../../text/printable.ts';

export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

const CODES: Readonly<Record<Colour, string>> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
};

/** The width of field labels with the space after them. */
export const LABEL_WIDTH = 11;

const MAX_TEXT_CHARACTERS = 2000;

/** Writes lines for a terminal. All text is made safe to print, and wrapped at words to the width. */
export class Page {
  readonly #lines: string[] = [];
  readonly #color: boolean;
  readonly #width: number;

  constructor(color: boolean, width: number) {
    this.#color = color;
    this.#width = Math.max(width, 40);
  }

  /** One line of parts, not wrapped. */
  line(...parts: readonly (string | readonly [string, ...Colour[]])[]): void {
    const painted = parts.map((part) =>
      typeof part === 'string' ? safe(part) : this.#paint(safe(part[0]), part.slice(1) as Colour[]),
    );
    this.#lines.push(painted.join('').trimEnd());
  }

  blank(): void {
    if (this.#lines.at(-1) !== '') this.#lines.push('');
  }

  heading(text: string): void {
    this.blank();
    this.line([text, 'bold']);
    this.blank();
  }

  /** Indented text. A label precedes its first line. */
  field(label: string, text: string, indent: number, ...colours: readonly Colour[]): void {
    const margin = ' '.repeat(indent + LABEL_WIDTH);
    const lines = wrap(safe(text), this.#width - margin.length);
    for (const [index, line] of lines.entries()) {
      const start =
        index === 0 ? `${' '.repeat(indent)}${this.#paint(label.padEnd(LABEL_WIDTH), ['dim'])}` : margin;
      this.#lines.push(`${start}${this.#paint(line, colours)}`.trimEnd());
    }
  }

  text(text: string, indent: number, ...colours: readonly Colour[]): void {
    for (const line of wrap(safe(text), this.#width - indent))
      this.#lines.push(`${' '.repeat(indent)}${this.#paint(line, colours)}`);
  }

  /** A command, not wrapped, so that it can be copied. Its line ends stay; each line is made safe. */
  command(command: string, indent: number): void {
    for (const line of command.split('\n'))
      this.#lines.push(
        `${' '.repeat(indent)}${this.#paint(printable(line, Number.POSITIVE_INFINITY), ['cyan'])}`,
      );
  }

  toString(): string {
    return `${this.#lines.join('\n').trimEnd()}\n`;
  }

  #paint(text: string, colours: readonly Colour[]): string {
    if (!this.#color || colours.length === 0 || text === '') return text;
    return `\u001b[${colours.map((colour) => CODES[colour]).join(';')}m${text}\u001b[0m`;
  }
}

function safe(text: string): string {
  return printable(text, MAX_TEXT_CHARACTERS);
}

/** Lines of at most `width` characters, broken at spaces, or within a word that is longer. */
function wrap(text: string, width: number): string[] {
  const room = Math.max(width, 20);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((one) => pieces(one, room))) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function pieces(word: string, room: number): string[] {
  if (word.length <= room) return [word];
  const characters = [...word];
  return Array.from({ length: Math.ceil(characters.length / room) }, (_, index) =>
    characters.slice(index * room, (index + 1) * room).join(''),
  );
}
