import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every file below a folder with a digest of its content: equal when nothing was changed. */
export function snapshotOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [
        path,
        entry.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'folder',
      ];
    }),
  );
}
