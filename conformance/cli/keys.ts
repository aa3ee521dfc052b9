import type { KeyObject } from 'node:crypto';
import { CertificateError, readPrivateKey, readPublicKey } from '../certificate/sign.ts';
import { CommandError } from './program.ts';
import { readTextFile } from './report-file.ts';

/** The public key in a PEM file, as a report names it. Throws `CommandError`. */
export function publicKeyOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : orCommandError(() => readPublicKey(readTextFile(path)), path);
}

/** The private key in a PEM file. Throws `CommandError`. */
export function privateKeyOf(path: string): KeyObject {
  return orCommandError(() => readPrivateKey(readTextFile(path)), path);
}

/** Turns a `CertificateError` into a `CommandError`, which names the file. */
export function orCommandError<T>(read: () => T, path?: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new CommandError(path === undefined ? error.message : `${path}: ${error.message}`);
  }
}
