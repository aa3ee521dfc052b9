import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';

/** Renames the draft unless a file of that name exists. Returns whether it did. */
export function putInPlace(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    // Some file systems have no hard links.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    if (existsSync(path)) return false;
    renameSync(draft, path);
    return true;
  }
}

/** Removes the draft and the files that SQLite may have left next to it. */
export function removeDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
}

/**
 * Gives a file that root created to the owner of `like`, a file or a folder: the server, which runs as another user,
 * must open it. Does nothing for other users.
 */
export function giveToOwnerOf(like: string, file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(like);
  if (uid !== statSync(file).uid) chownSync(file, uid, gid);
}

/** fsyncs a file, or a folder after a change of names in it. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
