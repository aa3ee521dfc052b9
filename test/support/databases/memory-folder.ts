import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
const NEEDED_BYTES = 2 * 2 ** 30;

/**
 * The temporary folders of a run are in memory where there is enough of it: every commit of a test's database is
 * synced, and most of a run would be waiting for the disk.
 */
export function setup(): (() => void) | undefined {
  if (freeBytes() < NEEDED_BYTES) return undefined;
  const before = process.env['TMPDIR'];
  const folder = mkdtempSync(`${MEMORY}/vitest-of-berth-`);
  // A PostgreSQL that root starts runs as another user.
  chmodSync(folder, 0o755);
  process.env['TMPDIR'] = folder;
  return () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(folder, { recursive: true, force: true });
  };
}

function freeBytes(): number {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
