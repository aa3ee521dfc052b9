import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Part, proofs } from './support/proofs.ts';
import { lastGreen, readPage, writeGreen } from './support/proofs-table.ts';

/**
 * `npm run proofs` lists what takes longer than .ci/run has time for; `npm run proofs -- NAME…` runs some of it, and writes into
 * docs/proofs.md at which commit it was green. A run that was ended goes on where it was, as long as the commit is the same;
 * seeds go on from the last ones of the table. `--from SEED` begins with another.
 */
const root = join(import.meta.dirname, '..');
const progressFile = join(root, 'node_modules/.cache/proofs.json');

/** By the name of a proof: the parts that were green, and at which commit. */
type Progress = Record<string, { commit: string; firstSeed: number; done: string[] }>;

const { values, positionals: names } = parseArgs({
  options: { from: { type: 'string' } },
  allowPositionals: true,
});
const unknown = names.filter((name) => proofs[name] === undefined);
if (unknown.length > 0) throw new Error(`there is no proof ${unknown.join(', ')}: npm run proofs lists them`);

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

function lastSeedOf(name: string): number {
  return Number(lastGreen(readPage(), name).match(/to (\d+)/)?.[1] ?? 100_000);
}

function readProgress(): Progress {
  try {
    return JSON.parse(readFileSync(progressFile, 'utf8'));
  } catch {
    return {};
  }
}

function keep(progress: Progress): void {
  mkdirSync(dirname(progressFile), { recursive: true });
  writeFileSync(progressFile, JSON.stringify(progress));
}

async function succeeds({ command: [program = '', ...args] }: Part): Promise<boolean> {
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  return code === 0;
}

/** Runs the parts that were not green yet. Returns those that are red. */
async function run(name: string, commit: string): Promise<string[]> {
  const proof = proofs[name];
  if (proof === undefined) throw new Error(name);
  const progress = readProgress();
  const known = progress[name]?.commit === commit ? progress[name] : undefined;
  const firstSeed = Number(values.from ?? known?.firstSeed ?? lastSeedOf(name) + 1);
  const done = known?.firstSeed === firstSeed ? known.done : [];
  const parts = proof.parts(firstSeed, (pattern) => globSync(pattern, { cwd: root }).sort());
  const red: string[] = [];
  for (const part of parts.filter(({ id }) => !done.includes(id))) {
    say(`\n== ${name}: ${part.id}`);
    if (await succeeds(part)) done.push(part.id);
    else red.push(`${name}: ${part.id}`);
    keep({ ...readProgress(), [name]: { commit, firstSeed, done } });
  }
  if (red.length > 0) return red;
  const seeds = proof.seeds === undefined ? '' : `, seeds ${firstSeed} to ${firstSeed + proof.seeds - 1}`;
  writeGreen(name, `${commit}, ${new Date().toISOString().slice(0, 10)}${seeds}`);
  const { [name]: _finished, ...others } = readProgress();
  keep(others);
  return [];
}

if (names.length === 0)
  for (const [name, { finds, minutes }] of Object.entries(proofs))
    say(`${name.padEnd(20)} ${String(minutes).padStart(3)} min  ${finds}`);
else {
  const changed = git('status', '--porcelain').split('\n');
  const open = changed.filter((line) => line !== '' && !line.endsWith(' docs/proofs.md'));
  if (open.length > 0)
    throw new Error(`commit first, so that the commit says what was run:\n${open.join('\n')}`);
  const commit = git('rev-parse', '--short=8', 'HEAD');
  const red: string[] = [];
  for (const name of names) red.push(...(await run(name, commit)));
  say(red.length === 0 ? `\ngreen at ${commit}: ${names.join(', ')}` : `\nred:\n${red.join('\n')}`);
  process.exitCode = red.length === 0 ? 0 : 1;
}
