import { statfs } from 'node:fs/promises';

/** In bytes. */
export interface DiskRoom {
  free: number;
  size: number;
}

/** What room the disk of a folder has for this user; undefined: that cannot be read. */
export async function diskRoomOf(folder: string): Promise<DiskRoom | undefined> {
  const disk = await statfs(folder).catch(() => undefined);
  return disk && { free: disk.bavail * disk.bsize, size: disk.blocks * disk.bsize };
}
