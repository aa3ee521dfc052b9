import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListFiles } from '../ports/list-files.ts';

/** Writes lists as files in a folder. Only the owner can read them. */
export function listFilesIn(folder: string): ListFiles {
  const written = new Map<string, string>();
  const pathOf = (name: string): string => join(folder, `${name.replaceAll(/[^A-Za-z0-9._-]/g, '_')}.txt`);
  return {
    async write(name, lines) {
      const path = pathOf(name);
      const text = `${lines.join('\n')}\n`;
      const digest = createHash('sha256').update(text).digest('hex');
      if (written.get(path) === digest) return path;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const draft = `${path}.${process.pid}.new`;
      // The new file is created exclusively, so no link that another user made in a shared folder is followed.
      await rm(draft, { force: true });
      await writeFile(draft, text, { flag: 'wx', mode: 0o600 });
      await rename(draft, path);
      written.set(path, digest);
      return path;
    },
    async remove(name) {
      const path = pathOf(name);
      written.delete(path);
      await rm(path, { force: true }).catch(() => undefined);
    },
  };
}
