import type { SshRung } from '../transcript/records.ts';

export type KeyType = 'ed25519' | 'ecdsa' | 'rsa';

/** A key pair made for one run. `publicKey` is one OpenSSH line, `privateKey` OpenSSH's PEM. */
export interface KeyPair {
  publicKey: string;
  privateKey: string;
}

export interface SshLogin {
  host: string;
  port: number;
  username: string;
  privateKey: string;
  /** The command to run after login; default `true`. */
  command?: string;
  timeoutMs: number;
  /** Whether private addresses are allowed. The target chooses the host, and may be hostile. */
  allowPrivate: boolean;
  signal?: AbortSignal;
}

export interface SshOutcome {
  /** `done`, or the stage that failed. */
  rung: SshRung;
  /** Why the login failed. */
  message?: string;
  /** `SHA256:…` as OpenSSH prints it, once the server has shown its key. */
  hostKey?: string;
  exitCode?: number;
  /** The first 4 KiB. */
  stdout?: string;
  totalMs: number;
}

/** Logs in as a user would: one key, no agent, no password, no other authentication method. Throws nothing. */
export interface SshClient {
  login(login: SshLogin): Promise<SshOutcome>;
  /** Generates a key pair, of Ed25519 by default; `comment` is appended to the public line. */
  newKeyPair(comment: string, type?: KeyType): KeyPair;
}
