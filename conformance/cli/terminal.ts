import { createInterface } from 'node:readline/promises';
import { printableLines } from '../text/printable.ts';
import { createRedactor, type Redactor } from '../text/redact.ts';

/** Output and prompts of a command. Known secrets are redacted from everything it writes. */
export interface Terminal {
  secrets: Redactor;
  /** Writes to standard output. Neither this nor `err` throws if the reader is gone. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  outIsTty: boolean;
  errIsTty: boolean;
  /** Whether a user can answer a prompt. */
  isInteractive: boolean;
  /** Width in columns. */
  width: number;
  color: boolean;
  /** Returns the typed line, or an empty one at the end of input. Rejects with the signal's reason. */
  ask(question: string, signal: AbortSignal): Promise<string>;
}

const DEFAULT_WIDTH = 100;

/** The terminal of this process. */
export function processTerminal(env: Readonly<Record<string, string | undefined>>): Terminal {
  const secrets = createRedactor();
  // Without an error listener, EPIPE would end the process, including the clean-up.
  for (const stream of [process.stdout, process.stderr])
    if (stream.listenerCount('error') === 0) stream.on('error', () => {});
  const color = wantsColor(env);
  const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  return {
    secrets,
    out: (text) => void process.stdout.write(printableLines(secrets.text(text), color)),
    err: (text) =>
      void process.stderr.write(printableLines(secrets.text(text), process.stderr.isTTY === true)),
    outIsTty: process.stdout.isTTY === true,
    errIsTty: process.stderr.isTTY === true,
    isInteractive,
    width: process.stdout.columns || DEFAULT_WIDTH,
    color,
    ask: askAtTerminal,
  };
}

/** https://no-color.org; `FORCE_COLOR` as in Node.js. */
function wantsColor(env: Readonly<Record<string, string | undefined>>): boolean {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  if (env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0') return true;
  return process.stdout.isTTY === true && env['TERM'] !== 'dumb';
}

async function askAtTerminal(question: string, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  lines.once('close', () => closed.abort());
  // readline receives Ctrl-C instead of the process.
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return await lines.question(printableLines(question, false), {
      signal: AbortSignal.any([signal, closed.signal]),
    });
  } catch {
    signal.throwIfAborted();
    return '';
  } finally {
    lines.close();
  }
}
