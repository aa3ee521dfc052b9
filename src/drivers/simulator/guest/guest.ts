import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../ports/clock.ts';

export const GUEST_USER = 'ubuntu';
/** The address of every machine: its SSH server listens there. */
export const GUEST_ADDRESS = '127.0.0.1';

export interface GuestFacts {
  spec: MachineSpec;
  bootedAt: number;
  cloudInit: 'running' | 'done';
  volumes: { ref: string; sizeGb: number }[];
}

export interface StoredFile {
  content: string;
  mode: number;
  user: string;
  group: string;
}

/** The files of a guest, at absolute paths. `read`, `write` and `remove` throw {@link FileError}. */
export interface Files {
  find(path: string): StoredFile | undefined;
  read(path: string): StoredFile;
  /** Writes or replaces a file. */
  write(path: string, file: StoredFile): void;
  remove(path: string): void;
  /** The sorted names in a directory. Undefined if the directory does not exist. */
  list(path: string): string[] | undefined;
}

/** A failed file operation, with a message as from strerror(3). */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** What a machine's SSH sessions and `runcmd` lines work on. */
export interface Guest {
  readonly files: Files;
  /** The platform's time. */
  readonly clock: Clock;
  facts(): GuestFacts;
  powerOff(): void;
  reboot(): void;
}
