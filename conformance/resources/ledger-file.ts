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
import type { PlainSource } from '../http/identity.ts';
import { identityOf } from '../http/plain-identity.ts';
import { systemErrorText } from '../text/wording.ts';
import { type Entry, isOpen, type LedgerFile, type LedgerLine } from './ledger.ts';
import { parseLedgerLine } from './ledger-line.ts';
import { type ProcessIdentity, thisProcess } from './process-identity.ts';

/** Interval at which a run touches its ledger file, so that other hosts see that it is alive. */
const HEARTBEAT_MS = 20_000;

/** The default folder of ledgers: below `$XDG_STATE_HOME`, or `~/.local/state`. */
export function defaultStateFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'berth', 'conformance');
}

export interface OpenLedgerFile extends LedgerFile {
  path: string;
  /** The entries written so far or waiting to be written. Available even if the file can no longer be read. */
  entries(): Entry[];
  /** Retries the lines that could not be written, then closes the file. Never throws. */
  close(): void;
}

/** The path of the ledger of a run. */
export function ledgerPath(folder: string, runId: string): string {
  return join(folder, `${runId}.ndjson`);
}

/** Opens the ledger of a run. Throws if the folder cannot be written; nothing has been bought then. */
export function openLedgerFile(folder: string, runId: string): OpenLedgerFile {
  makeFolder(folder);
  const path = ledgerPath(folder, runId);
  const file = openSync(path, 'a+', 0o600);
  syncFolder(dirname(path));
  return appendTo(path, file);
}

/** Reopens the ledger of an earlier run. */
export function reopenLedgerFile(path: string): OpenLedgerFile {
  return appendTo(path, openSync(path, 'a+', 0o600));
}

/**
 * `append` of an intent returns once it is on disk, and throws if it cannot be written: then nothing is bought. Later
 * lines about an entry wait in memory while the disk is full, so that the clean-up continues.
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
      // Ends a line that was only partly written.
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
    // The heartbeat is best effort.
  }
}

/** A new file survives a crash only after its folder is synced. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}

/** A ledger read from disk. */
export interface StoredLedger {
  path: string;
  runId: string;
  baseUrl: string;
  startedAt: string;
  /** Fingerprint of the API key or user name of the run. */
  keyPrint?: string;
  /** Set for a plain run: from what its names are drawn. */
  plain?: PlainSource;
  /** The process of the run. */
  process?: ProcessIdentity;
  /** When it was last written or touched, milliseconds since the epoch. */
  touchedAt: number;
  entries: Entry[];
  /** Numbers of unreadable lines, except a last line that a crash truncated. */
  unreadable: number[];
  /** The last line states that the clean-up is complete. */
  isClosed: boolean;
}

/** A file that cannot be read and may be a ledger with open entries. */
export interface UnreadableLedger {
  path: string;
  cause: unknown;
}

export interface StateFolder {
  all: StoredLedger[];
  /** The ledgers with open entries, oldest first. */
  open: StoredLedger[];
  unreadable: UnreadableLedger[];
}

/** The ledgers in a folder with open entries, oldest first. Unreadable files are skipped. */
export function readOpenLedgers(folder: string): StoredLedger[] {
  return readStateFolder(folder).open;
}

/** Reads every ledger in a folder. An unreadable file does not hide the others. Throws if the folder cannot be read. */
export function readStateFolder(folder: string): StateFolder {
  const all: StoredLedger[] = [];
  const unreadable: UnreadableLedger[] = [];
  for (const name of fileNames(folder)) {
    const path = join(folder, name);
    try {
      const ledger = readLedger(path);
      if (ledger !== undefined) all.push(ledger);
    } catch (cause) {
      unreadable.push({ path, cause });
    }
  }
  all.sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  return { all, open: all.filter(hasSomethingOpen), unreadable };
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

/** Undefined if the file is not a ledger, or the run created nothing. Throws if it cannot be read. */
export function readLedger(path: string): StoredLedger | undefined {
  const lines = readFileSync(path, 'utf8').split('\n');
  const [first = '', ...rest] = lines;
  const run = parseLedgerLine(first);
  if (run?.line !== 'run') {
    if (!rest.some((text) => text.includes('"line":"entry"'))) return undefined;
    throw new Error('its first line does not say whose it is');
  }
  const names = identityOf(run.runId, run.plain);
  const entries = new Map<number, Entry>();
  const unreadable: number[] = [];
  let isClosed = false;
  for (const [index, text] of rest.entries()) {
    const line = parseLedgerLine(text, names);
    if (line !== undefined) isClosed = line.line === 'closed';
    if (line?.line === 'entry') entries.set(line.entry.n, line.entry);
    else if (line === undefined && text !== '' && index < rest.length - 1) unreadable.push(index + 2);
  }
  return {
    path,
    runId: run.runId,
    baseUrl: run.baseUrl,
    startedAt: run.startedAt,
    ...(run.keyPrint !== undefined && { keyPrint: run.keyPrint }),
    ...(run.plain !== undefined && { plain: run.plain }),
    ...(run.process !== undefined && { process: run.process }),
    touchedAt: statSync(path).mtimeMs,
    entries: [...entries.values()],
    unreadable,
    isClosed,
  };
}

/**
 * The ledger cannot be written, so nothing more is bought. This is a fault of the set-up; the message has the remedy.
 */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
}

/**
 * Creates a folder and its parents, accessible to their owner only. Node's recursive mkdir never returns if a file
 * system refuses with ENOENT, as /proc does.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another run may have created it in the meantime.
    if (!existsSync(path)) throw error;
  }
}
