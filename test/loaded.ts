import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Runs the tests of `npm test` that depend on real time, several times, with busy loops beside them: they pass however
 * busy the machine is. A virtual clock does not notice the load.
 *
 *     node test/loaded.ts [--project unit] [--times 3] [--loops 2] [FILE…]
 */
const { values, positionals } = parseArgs({
  options: {
    project: { type: 'string', default: 'unit' },
    times: { type: 'string', default: '3' },
    loops: { type: 'string', default: '2' },
  },
  allowPositionals: true,
});
const [times, loops] = [Number(values.times), Number(values.loops)];
if (!Number.isInteger(times) || times < 1 || !Number.isInteger(loops) || loops < 0)
  throw new Error('expected --times from 1 on and --loops from 0 on, both whole numbers');

/** Ends by itself once its standard input is closed: also when this process is killed. */
const LOOP = `
  const { Worker } = require('node:worker_threads');
  new Worker('for (;;);', { eval: true });
  process.stdin.on('end', () => process.exit()).resume();`;

/** Twice the cores: each waits for the others too, and a core is not idle while one waits for something real. */
const WORKERS = 2 * availableParallelism();

/** Clocks, timers, processes, sockets and SSH, named in a test or in the fixture or suite that it imports. */
const REAL_TIME =
  /time\/until|systemClock|performance\.now|setTimeout|node:(timers|net|https?|child_process)|support\/processes|\.listen\(|openssh|ssh2/;

/**
 * The servers of `test/support` are not looked into: what waits for one waits two minutes, or goes by a virtual clock.
 */
function dependsOnRealTime(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file) || !existsSync(file)) return false;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  if (REAL_TIME.test(text)) return true;
  return [...text.matchAll(/from '(\.[^']+)'/g)]
    .map(([, path = '']) => join(dirname(file), path))
    .filter((path) => /\.(fixture|suite)\.ts$/.test(path))
    .some((path) => dependsOnRealTime(path, seen));
}

const chosen =
  positionals.length > 0
    ? positionals
    : globSync('{src,test,simulation,bench}/**/+([!.]).test.ts').filter((file) => dependsOnRealTime(file));

const busy = Array.from({ length: loops }, () =>
  spawn(process.execPath, ['-e', LOOP], { stdio: ['pipe', 'ignore', 'inherit'] }),
);
const lines: string[] = [];
let isGreen = true;
try {
  for (let run = 1; run <= times; run++) {
    const startedAt = performance.now();
    const tests = spawn(
      'vitest',
      ['run', '--project', values.project, `--maxWorkers=${WORKERS}`, ...chosen],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    );
    const [code, signal] = await once(tests, 'exit');
    isGreen &&= code === 0;
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    lines.push(
      `run ${run} of ${times}: ${code === 0 ? 'green' : `red (${signal ?? `exit code ${code}`})`}, ${seconds} s`,
    );
  }
} finally {
  const ends = busy.map((loop) => once(loop, 'exit'));
  for (const loop of busy) loop.stdin?.end();
  await Promise.all(ends);
}
process.stdout.write(
  `\nTests that depend on real time, with ${loops} busy loops beside them:\n${lines.map((line) => `  ${line}\n`).join('')}`,
);
process.exitCode = isGreen ? 0 : 1;
