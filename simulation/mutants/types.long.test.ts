import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { applyMutant, type Mutant } from './mutant.ts';
import { mutants } from './mutants.ts';

const ROOT = join(import.meta.dirname, '../..');
/** What TypeScript says of a name, property or export that is not there: the mutant would crash, not misbehave. */
const NAMES_NOTHING = /error TS(2304|2305|2339|2551|2552|2724|18004):/;

it('no mutant names what its source no longer has', { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-mutants-'));
  try {
    for (const name of ['tsconfig.json', 'package.json']) cpSync(join(ROOT, name), join(folder, name));
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const checked = {
      extends: './tsconfig.json',
      include: ['src'],
      exclude: ['**/*.test.ts', '**/*.suite.ts', '**/*.fixture.ts'],
    };
    writeFileSync(join(folder, 'tsconfig.src.json'), JSON.stringify(checked));
    let left = mutants;
    while (left.length > 0) {
      cpSync(join(ROOT, 'src'), join(folder, 'src'), { recursive: true });
      const { applied, rest } = applyDisjoint(left, folder);
      const { stdout } = spawnSync(
        join(ROOT, 'node_modules/.bin/tsc'),
        ['--project', 'tsconfig.src.json', '--incremental', '--tsBuildInfoFile', 'checked.tsbuildinfo'],
        { cwd: folder, encoding: 'utf8' },
      );
      const errors = stdout.split('\n').filter((line) => NAMES_NOTHING.test(line));
      expect(errors, `among ${applied.map(({ id }) => id).join(', ')}`).toEqual([]);
      left = rest;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Applies the mutants of which no two patch the same file, and returns these and the others. */
function applyDisjoint(all: readonly Mutant[], folder: string): { applied: Mutant[]; rest: Mutant[] } {
  const patched = new Set<string>();
  const [applied, rest]: [Mutant[], Mutant[]] = [[], []];
  for (const mutant of all) {
    const files = new Set(mutant.patches.map(({ file }) => file));
    if ([...files].some((file) => patched.has(file))) {
      rest.push(mutant);
      continue;
    }
    for (const file of files) {
      patched.add(file);
      const source = readFileSync(join(ROOT, file), 'utf8');
      writeFileSync(join(folder, file), applyMutant(mutant, file, source));
    }
    applied.push(mutant);
  }
  return { applied, rest };
}
