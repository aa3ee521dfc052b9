import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorText } from '../text/wording.ts';

/** Reads the files of a log by their path below it. */
export interface LogReader {
  /** The folder or URL. */
  place: string;
  /** Undefined if the log does not have the file. @throws {LogUnavailable} */
  read(path: string, maxBytes: number): Promise<Buffer | undefined>;
}

/** The log could not be read or written, so nothing can be said of it. The message says why. */
export class LogUnavailable extends Error {
  override readonly name = 'LogUnavailable';
}

/** Reads a log in a folder. @throws {LogUnavailable} if there is none */
export function folderReader(folder: string): LogReader {
  if (!isFolder(folder)) throw new LogUnavailable(`${folder} is not a folder`);
  return {
    place: folder,
    read: async (path, maxBytes) => readLogFile(join(folder, path), maxBytes),
  };
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Reads a file of the log. Undefined if it does not exist. @throws {LogUnavailable} */
export function readLogFile(path: string, maxBytes: number): Buffer | undefined {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw new LogUnavailable(`${path} is not a file`);
    if (stat.size > maxBytes) throw new LogUnavailable(`${path} is larger than ${maxBytes} bytes`);
    return readFileSync(path);
  } catch (error) {
    if (error instanceof LogUnavailable) throw error;
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined;
    throw new LogUnavailable(`${path} cannot be read (${systemErrorText(error)})`);
  }
}
