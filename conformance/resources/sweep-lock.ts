import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { livenessOf, type ProcessIdentity, thisProcess } from './process-identity.ts';

/** A process on another host is presumed dead once its file has not been touched for this long. */
const SILENT_FOR_MS = 120_000;

const identity = z.object({
  pid: z.int().min(1),
  host: z.string(),
  startedAt: z.string().exactOptional(),
});

/** Whether a process is presumed alive: checked directly on this host, by its last heartbeat on another. */
export function isPresumedAlive(of: ProcessIdentity, touchedAt: number): boolean {
  const life = livenessOf(of);
  return life === 'elsewhere' ? Date.now() - touchedAt < SILENT_FOR_MS : life === 'alive';
}

/**
 * Locks a ledger against a second sweep. Undefined if another sweep holds it. Only an optimisation: concurrent sweeps
 * do no harm.
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
    // An empty lock file is being written.
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
