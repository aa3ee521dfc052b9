import { readFileSync, writeFileSync } from 'node:fs';
import { proofs } from './proofs.ts';

/** Has the table of what was last green, between a heading and the end. */
const PAGE = new URL('../../docs/proofs.md', import.meta.url);
const HEAD = '| Proof | Run it after a change in | Minutes | Last green |\n|---|---|---|---|\n';

export function readPage(): string {
  return readFileSync(PAGE, 'utf8');
}

/** When a proof was last green, as its row in the page says: commit, date and seeds. */
export function lastGreen(page: string, name: string): string {
  const row = page.match(new RegExp(`^\\| ${name} \\|.*$`, 'm'))?.[0];
  return row?.split('|').at(-2)?.trim() ?? '';
}

/** The page with the table of all proofs; what it says of when each was green is kept, and `green` replaces some of that. */
export function withTable(page: string, green: Readonly<Record<string, string>> = {}): string {
  const rows = Object.entries(proofs).map(([name, { folders, minutes }]) =>
    [
      '',
      name,
      folders.map((folder) => `\`${folder}\``).join(', '),
      minutes,
      green[name] ?? lastGreen(page, name),
      '',
    ]
      .join(' | ')
      .trim(),
  );
  const at = page.indexOf(HEAD);
  if (at < 0) throw new Error('docs/proofs.md has no table of proofs');
  return `${page.slice(0, at)}${HEAD}${rows.join('\n')}\n`;
}

export function writeGreen(name: string, text: string): void {
  writeFileSync(PAGE, withTable(readPage(), { [name]: text }));
}
