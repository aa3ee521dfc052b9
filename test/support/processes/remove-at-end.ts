import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Has a folder removed when this process ends, however it ends, or earlier by the returned function. Before that, `first`
 * runs: a script for `sh`, with the folder as `$1`. Processes that end by themselves may still write into the folder.
 */
export function removeAtEnd(folder: string, first = ''): () => Promise<void> {
  // Its input ends with this process.
  const script = `cat; ${first}\ntries=0; until rm -rf "$1" || [ $((tries += 1)) -gt 200 ]; do sleep 0.05; done`;
  const remover = spawn('sh', ['-c', script, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    // The PATH of this process may be gone before it: test/bare-path.sh makes one for a command.
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/bin:/bin` },
  });
  remover.unref();
  return async () => {
    remover.ref();
    const ended = once(remover, 'exit');
    remover.stdin.end();
    await ended;
  };
}
