import { chmodSync, mkdtempSync, statfsSync } from 'node:fs';
import { removeAtEnd } from '../processes/remove-at-end.ts';

const MEMORY = '/dev/shm';
const NEEDED_BYTES = 2 * 2 ** 30;

/**
 * The temporary folders of a run are in memory where there is enough of it: every commit of a test's database is
 * synced, and most of a run would be waiting for the disk.
 */
export function setup(): (() => Promise<void>) | undefined {
  const folder = makeFolder();
  if (folder === undefined) return undefined;
  const remove = removeAtEnd(folder);
  // A PostgreSQL that root starts runs as another user.
  chmodSync(folder, 0o711);
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = folder;
  return async () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    await remove();
  };
}

function makeFolder(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize < NEEDED_BYTES ? undefined : mkdtempSync(`${MEMORY}/vitest-of-berth-`);
  } catch {
    return undefined;
  }
}
