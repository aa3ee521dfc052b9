import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Entry, isOpen, type LedgerFile, type LedgerLine } from './ledger.ts';

/** Where ledgers are kept when nothing else is said: below `$XDG_STATE_HOME`, or `~/.local/state`. */
export function defaultStateFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'berth', 'conformance');
}

/** Opens the ledger of a run. Throws where the folder cannot be written, before anything was bought. */
export function openLedgerFile(folder: string, runId: string): LedgerFile & { path: string; close(): void } {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${runId}.ndjson`);
  const file = openSync(path, 'a', 0o600);
  syncFolder(dirname(path));
  return {
    path,
    append: (line) => {
      writeSync(file, `${JSON.stringify(line)}\n`);
      fsyncSync(file);
    },
    close: () => closeSync(file),
  };
}

/** A new file is only safe once its folder is. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

/** A ledger as it was left. */
export interface StoredLedger {
  path: string;
  runId: string;
  baseUrl: string;
  startedAt: string;
  entries: Entry[];
}

/** The ledgers in a folder that still have something open, oldest first. */
export function readOpenLedgers(folder: string): StoredLedger[] {
  return fileNames(folder)
    .map((name) => readLedger(join(folder, name)))
    .filter((ledger) => ledger !== undefined)
    .filter((ledger) => ledger.entries.some(isOpen))
    .toSorted((a, b) => a.startedAt.localeCompare(b.startedAt));
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Undefined where the file does not begin as a ledger does. A line that a crash cut off is left out. */
function readLedger(path: string): StoredLedger | undefined {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .map(parseLine)
    .filter((line) => line !== undefined);
  const [run] = lines;
  if (run?.line !== 'run') return undefined;
  const entries = new Map<number, Entry>();
  for (const line of lines) if (line.line === 'entry') entries.set(line.entry.n, line.entry);
  return {
    path,
    runId: run.runId,
    baseUrl: run.baseUrl,
    startedAt: run.startedAt,
    entries: [...entries.values()],
  };
}

function parseLine(line: string): LedgerLine | undefined {
  try {
    return line === '' ? undefined : (JSON.parse(line) as LedgerLine);
  } catch {
    return undefined;
  }
}
