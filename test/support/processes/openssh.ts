import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface KeyPair {
  file: string;
  publicKey: string;
}

/** A key pair made by ssh-keygen. */
export async function generateKeyPair(folder: string, type: 'ed25519' | 'ecdsa' | 'rsa'): Promise<KeyPair> {
  const file = join(folder, `id_${type}_${crypto.randomUUID()}`);
  await run('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', `${type} for a test`, '-f', file]);
  return { file, publicKey: readFileSync(`${file}.pub`, 'utf8').trim() };
}

/** What OpenSSH's `ssh` did. Exit code 255 is its own: no connection, or no login. */
export interface SshResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Logs in to an instance with one key and runs a command there. */
export async function ssh(
  instance: Record<string, unknown>,
  { file }: KeyPair,
  command: string,
): Promise<SshResult> {
  const options = [
    ['-F', '/dev/null'],
    ['-i', file],
    ['-p', String(instance['ssh_port'])],
    ...[
      'IdentitiesOnly=yes',
      'IdentityAgent=none',
      'BatchMode=yes',
      'StrictHostKeyChecking=no',
      `UserKnownHostsFile=${file}.known_hosts`,
      'GlobalKnownHostsFile=/dev/null',
      'ConnectTimeout=10',
      'LogLevel=ERROR',
    ].map((option) => ['-o', option]),
  ].flat();
  const target = `${instance['ssh_username']}@${instance['public_ip']}`;
  try {
    const { stdout, stderr } = await run('ssh', [...options, target, command], { timeout: 15_000 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as SshResult;
    return { code: Number(code), stdout, stderr };
  }
}
