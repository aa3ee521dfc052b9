import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';

export const GUEST_USER = 'ubuntu';

/** What the guest can know about the machine that it runs on. */
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

/** The files of a guest, at absolute paths. All but `stat` throw {@link FileError}. */
export interface Files {
  /** Undefined: nothing is there. */
  stat(path: string): Promise<FileFacts | undefined>;
  read(path: string, user: string): Promise<string>;
  /** Writes as `user`; a new file belongs to it. */
  write(path: string, content: string, options: { user: string; append: boolean }): Promise<void>;
  makeDirectory(path: string, user: string): Promise<void>;
  remove(path: string, user: string): Promise<void>;
  /** What is in a directory, in the order of the names. */
  list(path: string): Promise<{ name: string; file: FileFacts }[]>;
}

/** The same where the disk is at hand: each call answers at once. */
export type DiskFiles = {
  [Name in keyof Files]: (...given: Parameters<Files[Name]>) => Awaited<ReturnType<Files[Name]>>;
};

/** A running guest, as its shell sees it: all that it needs of the platform. */
export interface Guest {
  facts(): Promise<GuestFacts>;
  readonly files: Files;
  /** An exit status: 0 after `ms` of the platform's time, 130 when interrupted. */
  sleep(ms: number, signal: AbortSignal): Promise<number>;
  powerOff(): Promise<void>;
  reboot(): Promise<void>;
}

/** Where a command reads and writes. */
export interface Streams {
  /** All of the standard input, once it has ended. */
  stdin(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Resolves once the reader has taken what was written, or is gone. */
  drained(): Promise<void>;
}

/** A failed file operation, in the words of strerror(3). */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** The shell that a command runs in. */
export interface CommandShell {
  readonly user: string;
  workingDirectory: string;
  /** Of the command before. */
  readonly lastStatus: number;
  /** Set by `exit`. */
  hasExited: boolean;
  /** `path` as an absolute path of the guest. */
  resolve(path: string): string;
}

/** One call of a command. */
export interface CommandCall extends Streams {
  name: string;
  args: string[];
  /** Whom it runs as. */
  user: string;
  shell: CommandShell;
  guest: Guest;
  signal: AbortSignal;
}

/** Returns the exit status; undefined: this guest does not have the command. */
export type Command = (
  call: CommandCall,
) => number | undefined | Promise<number> | Promise<number | undefined>;
