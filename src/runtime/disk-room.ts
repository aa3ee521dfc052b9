import { statfs } from 'node:fs/promises';

/** In bytes. */
export interface DiskRoom {
  free: number;
  size: number;
}

/** Returns the free space and the size of the disk of a folder, or undefined if they cannot be read. */
export async function diskRoomOf(folder: string): Promise<DiskRoom | undefined> {
  const disk = await statfs(folder).catch(() => undefined);
  return disk && { free: disk.bavail * disk.bsize, size: disk.blocks * disk.bsize };
}
