import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

/**
 * Runs `npm test` some times with busy loops beside it: it is green however much else the machine has to do.
 *
 *     npm run test:loaded -- [--times 3] [--loops 4] [-- what vitest is given]
 */
const { values, positionals } = parseArgs({
  options: { times: { type: 'string', default: '3' }, loops: { type: 'string', default: '4' } },
  allowPositionals: true,
});
const [times, loops] = [Number(values.times), Number(values.loops)];
if (!Number.isInteger(times) || times < 1 || !Number.isInteger(loops) || loops < 0)
  throw new Error('expected --times from 1 on and --loops from 0 on, both whole numbers');

/** Ends by itself once nobody holds its standard input: also when this process is killed. */
const LOOP = `
  const { Worker } = require('node:worker_threads');
  new Worker('for (;;);', { eval: true });
  process.stdin.on('end', () => process.exit()).resume();`;

const busy = Array.from({ length: loops }, () =>
  spawn(process.execPath, ['-e', LOOP], { stdio: ['pipe', 'ignore', 'inherit'] }),
);
const lines: string[] = [];
let isGreen = true;
try {
  for (let run = 1; run <= times; run++) {
    const startedAt = performance.now();
    const tests = spawn('npm', ['test', '--', ...positionals], { stdio: ['ignore', 'inherit', 'inherit'] });
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
  `\nnpm test with ${loops} busy loops beside it:\n${lines.map((line) => `  ${line}\n`).join('')}`,
);
process.exitCode = isGreen ? 0 : 1;
