import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';

export const GUEST_USER = 'ubuntu';

export interface GuestFacts {
  spec: MachineSpec;
  /** The platform's time. */
  now: number;
  bootedAt: number;
  privateIp: string;
  cloudInit: 'running' | 'done';
  volumes: { ref: string; sizeGb: number }[];
}

/** A file or directory, without its content. */
export interface FileFacts {
  kind: 'file' | 'directory';
  mode: number;
  user: string;
  group: string;
  sizeBytes: number;
  modifiedAt: number;
}

/** The files of a guest, at absolute paths. All methods but `stat` throw {@link FileError}. */
export interface Files {
  /** Undefined if the path does not exist. */
  stat(path: string): Promise<FileFacts | undefined>;
  read(path: string, user: string): Promise<string>;
  /** Writes as `user`, who owns a new file. */
  write(path: string, content: string, options: { user: string; append: boolean }): Promise<void>;
  makeDirectory(path: string, user: string): Promise<void>;
  remove(path: string, user: string): Promise<void>;
  /** The entries of a directory, sorted by name. */
  list(path: string): Promise<{ name: string; file: FileFacts }[]>;
}

/** The same methods, synchronous, for code with direct access to the disk. */
export type DiskFiles = {
  [Name in keyof Files]: (...given: Parameters<Files[Name]>) => Awaited<ReturnType<Files[Name]>>;
};

export interface Guest {
  facts(): Promise<GuestFacts>;
  readonly files: Files;
  /** Sleeps in the platform's time. Resolves with an exit status: 0 after `ms`, 130 if interrupted. */
  sleep(ms: number, signal: AbortSignal): Promise<number>;
  powerOff(): Promise<void>;
  reboot(): Promise<void>;
}

export interface Streams {
  /** The whole standard input, once it has ended. */
  stdin(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Resolves when the reader has taken the output, or is gone. */
  drained(): Promise<void>;
}

/** A failed file operation, with a message as from strerror(3). */
export class FileError extends Error {
  override readonly name = 'FileError';
}

export interface CommandShell {
  readonly user: string;
  workingDirectory: string;
  /** Exit status of the previous command. */
  readonly lastStatus: number;
  /** Set by `exit`. */
  hasExited: boolean;
  /** `path` as an absolute path of the guest. */
  resolve(path: string): string;
}

export interface CommandCall extends Streams {
  name: string;
  args: string[];
  /** The user that it runs as. */
  user: string;
  shell: CommandShell;
  guest: Guest;
  signal: AbortSignal;
}

/** Returns the exit status. Undefined if this guest does not have the command. */
export type Command = (
  call: CommandCall,
) => number | undefined | Promise<number> | Promise<number | undefined>;
