import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { livenessOf, type ProcessIdentity, thisProcess } from './process-identity.ts';

/** What is not touched for so long is taken to have ended, where nothing else can be known of it. */
const SILENT_FOR_MS = 120_000;

const identity = z.object({
  pid: z.int().min(1),
  host: z.string(),
  startedAt: z.string().exactOptional(),
});

/** Whether a process is taken to live, by itself or, on another host, by when it last touched its file. */
export function isPresumedAlive(of: ProcessIdentity, touchedAt: number): boolean {
  const life = livenessOf(of);
  return life === 'elsewhere' ? Date.now() - touchedAt < SILENT_FOR_MS : life === 'alive';
}

/**
 * Keeps two sweeps from doing the same work, or answers with undefined where another one is at it. It is a courtesy: two
 * at once would do no harm, since what is destroyed twice is destroyed.
 */
export function lock(ledgerPath: string): Disposable | undefined {
  const path = `${ledgerPath}.lock`;
  if (!create(path)) {
    if (isHeld(path)) return undefined;
    rmSync(path, { force: true });
    if (!create(path)) return undefined;
  }
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

function create(path: string): boolean {
  try {
    const file = openSync(path, 'wx', 0o600);
    writeSync(file, JSON.stringify(thisProcess()));
    fsyncSync(file);
    closeSync(file);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

function isHeld(path: string): boolean {
  try {
    const touchedAt = statSync(path).mtimeMs;
    const { data: holder } = identity.safeParse(parse(readFileSync(path, 'utf8')));
    // One that says nothing yet is just being written.
    return holder === undefined ? Date.now() - touchedAt < SILENT_FOR_MS : isPresumedAlive(holder, touchedAt);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
