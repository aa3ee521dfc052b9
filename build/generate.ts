import { execFileSync } from 'node:child_process';

/**
 * `npm run generate` writes every page, schema and document that is generated from the code. With a word it writes what is
 * generated on request: `coverage` (the whole lists behind docs/coverage.md), `screenshots` (of the consoles, with Debian's
 * Chromium), `migration NAME` (of what changed in src/store/schema/).
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  coverage: 'test/write-coverage.ts',
  screenshots: 'test/console-screenshots.ts',
  migration: 'test/draft-migration.ts',
};

const [word, ...rest] = process.argv.slice(2);
if (word === undefined) {
  execFileSync('vitest', ['run', '--project', 'check', '--update'], { stdio: 'inherit' });
} else {
  const script = SCRIPTS[word];
  if (script === undefined) throw new Error(`npm run generate -- ${Object.keys(SCRIPTS).join(' | ')}`);
  execFileSync('node', [script, ...rest], { stdio: 'inherit' });
}
