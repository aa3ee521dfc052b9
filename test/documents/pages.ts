import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');

const markdownBelow = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => join(folder, name));

/** Every page that is written for a reader of the repository, as its path from the root. */
export const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...['docs', 'examples', 'test'].flatMap(markdownBelow),
].sort();

export const readPage = (page: string): string => readFileSync(join(root, page), 'utf8');

/** The blocks of a language of a page, in order. */
export function blocksOf(language: 'sh' | 'yaml', text: string): string[] {
  const fenced = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm');
  return [...text.matchAll(fenced)].map(([, block = '']) => block);
}

/** The blocks of shell commands of a page, in order. */
export const shellBlocksOf = (text: string): string[] => blocksOf('sh', text);

/** The commands of a block, each as a reader would paste it: a quoted text or a here-document may have several lines. */
export function commandsOf(block: string): string[] {
  const commands: string[] = [];
  let open = '';
  for (const line of block.split('\n')) {
    open += `${line}\n`;
    const [, end] = /<<'?(\w+)'?$/m.exec(open) ?? [];
    if (end !== undefined && line !== end) continue;
    if (line.endsWith('\\') || (end === undefined && hasOpenQuote(open))) continue;
    if (open.trim() !== '') commands.push(open.trim());
    open = '';
  }
  return commands.filter((command) => !command.startsWith('#'));
}

const hasOpenQuote = (text: string): boolean =>
  text.replaceAll(/ #.*$/gm, '').replaceAll('\\"', '').split('"').length % 2 === 0;

/** The code within the lines of a page. */
export function inlineCodeOf(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll(/\s+/g, ' '));
}
