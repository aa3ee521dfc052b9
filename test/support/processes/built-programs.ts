import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../../..');

/** Programs that tests start besides `berth`, by name. */
const programs = {
  'quick-berth': 'test/support/processes/quick-berth.ts',
  'serve-with-failpoint': 'test/support/processes/serve-with-failpoint.ts',
  'fast-monitor': 'test/support/processes/fast-monitor.ts',
  'hasty-marketplace': 'test/support/processes/hasty-marketplace.ts',
  'provider-server': 'test/support/processes/provider-server.ts',
  retain: 'test/support/processes/retain.ts',
  'conformance-alone': 'test/support/conformance.ts',
};
export type Program = 'main' | keyof typeof programs;

/** For tests of what is not built: single modules, and the commands that a checkout prints. */
export const sourceOfBerth = join(root, 'src/main.ts');

/** The file of a program: as built for this run, else its source. */
export function fileOf(program: Program): string {
  const built = process.env['BERTH_TEST_BUILD'];
  if (built !== undefined) return join(root, built, `${program}.js`);
  return program === 'main' ? sourceOfBerth : join(root, programs[program]);
}

/** Builds them once for a run that starts many: a start takes a quarter of the CPU then. */
export async function setup(): Promise<() => void> {
  // Below the root: what sources read beside themselves is found from there.
  const folder = mkdtempSync(join(root, 'dist-'));
  const more = Object.entries(programs).map(([name, source]) => `${name}=${source}`);
  await promisify(execFile)(process.execPath, ['build/bundle.ts', basename(folder), ...more], { cwd: root });
  process.env['BERTH_TEST_BUILD'] = basename(folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
