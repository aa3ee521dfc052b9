import { z } from 'zod';
import { findBlobProblem, isSshKeyType, type SshKeyType, sshKeyTypes } from './ssh-key-blob.ts';

export { sshKeyTypes };

/** A parsed OpenSSH public key: one key, no options. */
export interface SshPublicKey {
  type: SshKeyType;
  /** The key blob as in RFC 4253 §6.6, base64. */
  base64: string;
  comment: string;
}

const MAX_SSH_KEY_LENGTH = 8192;

/** PEM, OpenSSH and PuTTY files, and the base64 of "openssh-key-v1" if the armor was cut off. */
const PRIVATE_KEY = /BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File|b3BlbnNzaC1rZXktdjE/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/;
/** The first bytes of every key: the high bytes of a length. */
const KEY_DATA = /^AAAA[A-Za-z0-9+/]{16}/;

/**
 * Parses one raw OpenSSH public key (O: CreateInstanceRequest, ssh_keys). A trailing line end is allowed. Refuses
 * options, several keys, control characters, a type that differs from the one in the data, keys that sshd would not
 * load, and private keys. The problem never repeats key data, which may be a secret.
 */
export function parseSshPublicKey(text: string): { key: SshPublicKey } | { problem: string } {
  if (PRIVATE_KEY.test(text))
    return {
      problem:
        'this is a private key: send the public one (the .pub file), and replace this key, because it is no longer secret',
    };
  if (text.length > MAX_SSH_KEY_LENGTH)
    return { problem: `expected at most ${MAX_SSH_KEY_LENGTH} characters` };
  const line = text.replace(/\r?\n$/, '').trim();
  if (line === '') return { problem: 'expected an OpenSSH public key, got an empty string' };
  if (CONTROL_CHARACTERS.test(text.replace(/\r?\n$/, '')) || !line.isWellFormed())
    return { problem: 'expected one key on one line, without line breaks or control characters' };

  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  if (!isSshKeyType(type)) return { problem: unknownType(type, line) };
  if (comment.some((word) => KEY_DATA.test(word)))
    return { problem: 'expected one key, got another one after it on the same line' };
  const problem = findDataProblem(type, base64);
  return problem === undefined ? { key: { type, base64, comment: comment.join(' ') } } : { problem };
}

/** The key as one authorized_keys line, rebuilt from its parts. */
export function toAuthorizedKeysLine(key: SshPublicKey): string {
  return key.comment === '' ? `${key.type} ${key.base64}` : `${key.type} ${key.base64} ${key.comment}`;
}

function unknownType(type: string, line: string): string {
  const expected = `one of: ${sshKeyTypes.join(', ')}`;
  if (type === 'ssh-dss') return `DSA keys are not accepted; expected ${expected}`;
  if (type.includes('-cert-v')) return `certificates are not accepted; expected a key of ${expected}`;
  if (line.split(/[ \t]+/).some(isSshKeyType))
    return 'expected the line to begin with the key type: options and host names before it are not accepted';
  return `expected the line to begin with ${expected}`;
}

function findDataProblem(type: SshKeyType, base64: string): string | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return 'expected base64 key data after the key type';
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return 'the base64 key data is truncated or not canonical';
  return findBlobProblem(type, bytes);
}

/** A key in a request. {@link parseSshPublicKey} describes the problem of an invalid one. */
export const sshKeyTextSchema = z
  .string()
  .max(MAX_SSH_KEY_LENGTH, `expected at most ${MAX_SSH_KEY_LENGTH} characters`);
