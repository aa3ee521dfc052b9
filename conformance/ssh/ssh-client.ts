import type { SshRung } from '../transcript/records.ts';
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
  /** Run once logged in; `true` when absent. */
  command?: string;
  timeoutMs: number;
  /** Whether it may lead into a network of somebody's own. The target names the host, and may mean harm. */
  allowPrivate: boolean;
  signal?: AbortSignal;
}

export interface SshOutcome {
  /** `done`, or the rung that it did not get past. */
  rung: SshRung;
  /** Why it went no further, in words. */
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
  /** A fresh ed25519 pair; `comment` ends its public line. */
  newKeyPair(comment: string): KeyPair;
}
