import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RestartOutcome, RestartTarget } from '../scenarios/restart/restart-target.ts';

const TIMEOUT_MS = 600_000;
const SHOWN_LINES = 20;
const SHOWN_CHARS = 4000;

/**
 * Runs a command of the operator's in a shell, for at most `timeoutMs`, and returns its exit code and the last lines
 * that it printed. It may leave a server running: the output goes to a file, which such a server can go on writing to.
 */
export function restartBy(command: string, timeoutMs = TIMEOUT_MS): RestartTarget {
  return async (signal) => {
    signal.throwIfAborted();
    const folder = mkdtempSync(join(tmpdir(), 'berth-conformance-'));
    const path = join(folder, 'output');
    const file = openSync(path, 'w', 0o600);
    try {
      const ended = await runInShell(command, { file, timeoutMs, signal });
      signal.throwIfAborted();
      return { ...ended, output: lastLines(readFileSync(path, 'utf8')) };
    } finally {
      closeSync(file);
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** On a timeout and at an abort the command is ended, with all that it started. */
function runInShell(
  command: string,
  { file, timeoutMs, signal }: { file: number; timeoutMs: number; signal: AbortSignal },
): Promise<Pick<RestartOutcome, 'exitCode' | 'message'>> {
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', file, file], detached: true });
    const end = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    };
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      end();
    }, timeoutMs);
    const settle = (outcome: Pick<RestartOutcome, 'exitCode' | 'message'>): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve(outcome);
    };
    signal.addEventListener('abort', end, { once: true });
    child.on('error', (error) => settle({ message: `could not be started: ${error.message}` }));
    child.on('exit', (exitCode, by) => {
      if (isLate) return settle({ message: `was ended, since it took longer than ${timeoutMs / 1000} s` });
      settle(exitCode === null ? { message: `was ended by ${by}` } : { exitCode });
    });
  });
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n').slice(-SHOWN_CHARS);
}
