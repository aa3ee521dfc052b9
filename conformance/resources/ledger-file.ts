import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemErrorText } from '../text/wording.ts';
import { type Entry, isOpen, type LedgerFile, type LedgerLine } from './ledger.ts';
import { parseLedgerLine } from './ledger-line.ts';
import { type ProcessIdentity, thisProcess } from './process-identity.ts';

/** A run touches its ledger this often, so that another host can see that it lives. */
const HEARTBEAT_MS = 20_000;

/** Where ledgers are kept when nothing else is said: below `$XDG_STATE_HOME`, or `~/.local/state`. */
export function defaultStateFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'berth', 'conformance');
}

export interface OpenLedgerFile extends LedgerFile {
  path: string;
  /** What was written of the entries, or was to be: it can be told where the file cannot be read any more. */
  entries(): Entry[];
  /** Writes what could not be written before, if that is possible now. Throws nothing. */
  close(): void;
}

/** Opens the ledger of a run. Throws where the folder cannot be written, before anything was bought. */
export function openLedgerFile(folder: string, runId: string): OpenLedgerFile {
  makeFolder(folder);
  const path = join(folder, `${runId}.ndjson`);
  const file = openSync(path, 'a+', 0o600);
  syncFolder(dirname(path));
  return appendTo(path, file);
}

/** Goes on with a ledger that was left. */
export function reopenLedgerFile(path: string): OpenLedgerFile {
  return appendTo(path, openSync(path, 'a+', 0o600));
}

/**
 * An intent is on the disk when `append` returns, and where it cannot be, `append` throws: nothing is bought. What comes
 * of it is written too, but a disk that is full then does not stop the clean-up: such a line waits for the next one.
 */
function appendTo(path: string, file: number): OpenLedgerFile {
  const waiting: string[] = endsInLine(file) ? [] : ['\n'];
  const flush = (): void => {
    if (waiting.length === 0) return;
    writeWhole(file, waiting.join(''));
    waiting.length = 0;
    fsyncSync(file);
  };
  const tryToFlush = (): void => {
    try {
      flush();
    } catch {
      // A line that was written in part is ended by the next one.
      if (waiting[0] !== '\n') waiting.unshift('\n');
    }
  };
  const entries = new Map<number, Entry>();
  const heartbeat = setInterval(() => touch(path), HEARTBEAT_MS).unref();
  return {
    path,
    entries: () => [...entries.values()],
    append: (line) => {
      waiting.push(`${JSON.stringify(line.line === 'run' ? { ...line, process: thisProcess() } : line)}\n`);
      if (line.line === 'entry' && !isIntent(line)) entries.set(line.entry.n, line.entry);
      if (!isIntent(line)) return tryToFlush();
      try {
        flush();
        if (line.line === 'entry') entries.set(line.entry.n, line.entry);
      } catch (error) {
        waiting.pop();
        waiting.unshift('\n');
        const why = `the ledger ${path} cannot be written (${systemErrorText(error)})`;
        throw new LedgerError(`${why}: make room, or name another folder with --state-dir`, { cause: error });
      }
    },
    close: () => {
      clearInterval(heartbeat);
      tryToFlush();
      closeSync(file);
    },
  };
}

function isIntent(line: LedgerLine): boolean {
  return line.line === 'run' || (line.line === 'entry' && line.entry.state === 'intended');
}

function writeWhole(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

function endsInLine(file: number): boolean {
  const { size } = fstatSync(file);
  const last = Buffer.alloc(1);
  return size === 0 || (readSync(file, last, 0, 1, size - 1) === 1 && last[0] === 0x0a);
}

function touch(path: string): void {
  try {
    utimesSync(path, new Date(), new Date());
  } catch {
    // It only shows that the run lives.
  }
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
  /** Of the key or the user name that the run signed in with. */
  keyPrint?: string;
  /** Of the run. */
  process?: ProcessIdentity;
  /** When it was last written or touched, milliseconds since the epoch. */
  touchedAt: number;
  entries: Entry[];
  /** Numbers of the lines that cannot be read, but for a last one that a crash cut off. */
  unreadable: number[];
  /** Its last line says that nothing is left to do. */
  isClosed: boolean;
}

/** A file that may be a ledger with something open, and cannot be read. */
export interface UnreadableLedger {
  path: string;
  cause: unknown;
}

export interface StateFolder {
  /** The ledgers that still have something open, oldest first. */
  open: StoredLedger[];
  unreadable: UnreadableLedger[];
}

/** The ledgers in a folder that still have something open, oldest first. Of what cannot be read nothing is said. */
export function readOpenLedgers(folder: string): StoredLedger[] {
  return readStateFolder(folder).open;
}

/** What a folder of ledgers shows. One file that cannot be read hides no other. Throws where the folder cannot be read. */
export function readStateFolder(folder: string): StateFolder {
  const open: StoredLedger[] = [];
  const unreadable: UnreadableLedger[] = [];
  for (const name of fileNames(folder)) {
    const path = join(folder, name);
    try {
      const ledger = readLedger(path);
      if (ledger !== undefined && hasSomethingOpen(ledger)) open.push(ledger);
    } catch (cause) {
      unreadable.push({ path, cause });
    }
  }
  return { open: open.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)), unreadable };
}

function hasSomethingOpen({ entries, unreadable, isClosed }: StoredLedger): boolean {
  return entries.some(isOpen) || (unreadable.length > 0 && !isClosed);
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Undefined where the file is no ledger, or one of a run that asked for nothing. Throws where it cannot be read. */
export function readLedger(path: string): StoredLedger | undefined {
  const lines = readFileSync(path, 'utf8').split('\n');
  const [first = '', ...rest] = lines;
  const run = parseLedgerLine(first);
  if (run?.line !== 'run') {
    if (!rest.some((text) => text.includes('"line":"entry"'))) return undefined;
    throw new Error('its first line does not say whose it is');
  }
  const entries = new Map<number, Entry>();
  const unreadable: number[] = [];
  let isClosed = false;
  for (const [index, text] of rest.entries()) {
    const line = parseLedgerLine(text, run.runId);
    if (line !== undefined) isClosed = line.line === 'closed';
    if (line?.line === 'entry') entries.set(line.entry.n, line.entry);
    else if (line === undefined && text !== '' && index < rest.length - 1) unreadable.push(index + 2);
  }
  return {
    path,
    runId: run.runId,
    baseUrl: run.baseUrl,
    startedAt: run.startedAt,
    ...(run.keyPrint === undefined ? {} : { keyPrint: run.keyPrint }),
    ...(run.process === undefined ? {} : { process: run.process }),
    touchedAt: statSync(path).mtimeMs,
    entries: [...entries.values()],
    unreadable,
    isClosed,
  };
}

/** The ledger cannot be written: nothing more is bought. It is the set-up's, and its message says what to do. */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
}

/**
 * Makes a folder and those above it, for its owner only. Node's own recursive mkdir never comes back where a file system
 * refuses a folder with ENOENT, as /proc does.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another run may have made it meanwhile.
    if (!existsSync(path)) throw error;
  }
}
