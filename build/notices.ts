import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LICENCE_FILE = /^(licen[cs]e|notice|copying)/i;
const LICENCE_SECTION = /^#+\s*licen[cs]e\s*$[\s\S]*Permission is hereby granted[\s\S]*/im;

/** The licences of the packages that these modules are of, as one text. @throws {Error} if one has none. */
export function noticesOf(moduleFiles: readonly string[]): string {
  const folders = new Set(moduleFiles.map(packageFolderOf).filter((folder) => folder !== undefined));
  const notices = [...folders].map(noticeOf).sort((a, b) => (a < b ? -1 : 1));
  return `The package of Berth contains code of these packages.\n\n${notices.join('\n')}`;
}

/** The innermost package of a module in `node_modules`; undefined: it is one of our own. */
function packageFolderOf(file: string): string | undefined {
  const [, path] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? [];
  return path;
}

/** What is read of a package.json; `licenses` is how old packages say it. */
interface PackageJson {
  name: string;
  version: string;
  license?: string;
  licenses?: { type: string }[];
  author?: string | { name: string };
}

function noticeOf(folder: string): string {
  const about: PackageJson = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const licence = about.license ?? about.licenses?.map(({ type }) => type).join(', ');
  const title = `${'='.repeat(78)}\n${about.name} ${about.version} (${licence})\n${'='.repeat(78)}`;
  return [title, ...licenceTexts(folder, about, licence), ''].join('\n\n');
}

/** Some packages bring no file of their licence: it stands in their README, or only its name in package.json. */
function licenceTexts(folder: string, { name, author }: PackageJson, licence: string | undefined): string[] {
  const names = readdirSync(folder);
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8').trim();
  const files = names.filter((file) => LICENCE_FILE.test(file));
  if (files.length > 0) return files.map(read);
  const [section] = names
    .filter((file) => /^readme/i.test(file))
    .flatMap((file) => LICENCE_SECTION.exec(read(file)) ?? []);
  if (section !== undefined) return [section.trim()];
  const owner = typeof author === 'string' ? author : author?.name;
  if (licence === 'MIT') return [`Copyright (c) ${owner ?? `the authors of ${name}`}\n\n${MIT}`];
  if (licence === 'Apache-2.0') return ['Its licence is that of Berth: see the file LICENSE.'];
  throw new Error(`${name} brings no text of its licence, ${licence}`);
}

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
