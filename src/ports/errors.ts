/** The store cannot be read or written now. It never means that something does not exist or has changed. */
export class StoreUnavailable extends Error {
  override readonly name: string = 'StoreUnavailable';
}

/** Ends the command with this message for the operator and exit code 1. */
export class Fatal extends Error {
  override readonly name: string = 'Fatal';
}

/** The resource is in order, but another process uses it, such as a running `berth serve`. */
export class InUse extends Fatal {
  override readonly name: string = 'InUse';
}

/** A platform has no mark of a writer, and no room for one, such as in a quota. */
export class NoRoomForMark extends Error {
  override readonly name = 'NoRoomForMark';
}

/** A request to a platform was not sent: it had no effect. */
export class NotReached extends Error {
  override readonly name = 'NotReached';
}

/** Words the operating system's error about a file. */
export function fileProblem(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return problems[code] ?? message;
}

const problems: Record<string, string> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a file is where a folder should be',
  EEXIST: 'a file is where a folder should be',
  ELOOP: 'its links go in a circle',
  ENAMETOOLONG: 'the name is too long',
};
