import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

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
