import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rawKeyOf, signReport } from '../certificate/sign.ts';
import type { Report } from '../report/report.ts';
import { greenReport } from '../report/sample.fixture.ts';
import { toBundle } from './bundle.ts';
import { formatCheckpoint, signCheckpoint } from './checkpoint.ts';
import { toEntry } from './entry.ts';
import { CHECKPOINT } from './log.ts';
import { LogDisk } from './log-disk.ts';
import { leafHash } from './merkle.ts';
import type { NoteKey } from './note.ts';
import { type Published, publish } from './publish.ts';
import { GrowingTree, tilesIn } from './tile-tree.ts';
import { TILE_WIDTH, tilePath } from './tiles.ts';

export const ORIGIN = 'log.example/berth';

export function newKey(): { secret: KeyObject; open: NoteKey; pem: string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  return {
    secret: privateKey,
    open: { bytes: rawKeyOf(privateKey) },
    pem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  };
}

export const logKey = newKey();
export const witnessKey = newKey();
const provider = newKey();

/** A signed report; each number is another one. */
export function signedReport(n: number, changes: Partial<Report> = {}): Report {
  const report: Report = { ...greenReport, run_id: `run-${n}`, ...changes };
  return signReport(report, 'ab'.repeat(32), provider.pem);
}

/** Creates a folder that is removed at the end. */
export function temporaryFolder(): {
  path: string;
  file: (name: string) => string;
  copy: (from: string, to: string) => string;
} & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-conformance-log-'));
  const file = (name: string): string => join(path, name);
  return {
    path,
    file,
    copy: (from, to) => {
      rmSync(file(to), { recursive: true, force: true });
      cpSync(file(from), file(to), { recursive: true });
      return file(to);
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Publishes a report with the log's own key. */
export function publishTo(
  folder: string,
  report: Report,
  { disk = new LogDisk(folder), key = logKey.secret, origin = ORIGIN } = {},
): Promise<Published> {
  return publish(report, { disk, key, origin });
}

/** Publishes the reports with these numbers. */
export async function publishAll(folder: string, numbers: Iterable<number>): Promise<void> {
  for (const n of numbers) await publishTo(folder, signedReport(n));
}

const entries = new Map<number, Buffer>();

/** The entry of the report with this number. */
export function entryOf(n: number): Buffer {
  const entry = entries.get(n) ?? toEntry(signedReport(n)).bytes;
  entries.set(n, entry);
  return entry;
}

/** Writes a log of the reports with these numbers, signed by the log's own key, without what was there before. */
export async function writeLog(folder: string, numbers: Iterable<number>, origin = ORIGIN): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const disk = new LogDisk(folder);
  disk.makeFolder();
  const entries = [...numbers].map(entryOf);
  const size = entries.length;
  const tree = new GrowingTree();
  for (const entry of entries) tree.append(leafHash(entry));
  for (const tile of tilesIn(size)) {
    disk.create(tilePath(tile), tree.tile(tile));
    const first = tile.index * TILE_WIDTH;
    if (tile.level === 0)
      disk.create(
        tilePath({ ...tile, level: 'entries' }),
        toBundle(entries.slice(first, first + tile.width)),
      );
  }
  const checkpoint = signCheckpoint(origin, size, await tree.at(size).root(), logKey.secret);
  disk.replace(CHECKPOINT, Buffer.from(formatCheckpoint(checkpoint)));
}
