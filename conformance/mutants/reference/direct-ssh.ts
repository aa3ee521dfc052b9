import { createHash } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';
import type { SshClient, SshLogin, SshOutcome } from '../../ssh/ssh-client.ts';
import { ssh2Client } from '../../ssh/ssh2-client.ts';
import type { Instance } from './model.ts';
import { SSH_HOST } from './ssh-endpoint.ts';

/** An SSH client that asks the machines of the reference directly, by the same rules as a login over a socket. */
export function directSsh(instances: ReadonlyMap<string, Instance>): SshClient {
  const { newKeyPair } = ssh2Client();
  return {
    newKeyPair,
    login: async (login) => ({ ...logIn(instances, login), totalMs: 0 }),
  };
}

function logIn(
  instances: ReadonlyMap<string, Instance>,
  { host, port, username, privateKey, command = 'true' }: SshLogin,
): Omit<SshOutcome, 'totalMs'> {
  const machine = [...instances.values()].findLast(
    ({ endpoint }) => host === SSH_HOST && endpoint.port === port && endpoint.isOpen,
  );
  if (machine === undefined) return { rung: 'connect', message: `${host}:${port} refused the connection` };
  const key = parsed(privateKey).getPublicSSH().toString('base64');
  const outcome = machine.endpoint.loginDirectly({ username, method: 'publickey', key }, command);
  if (outcome === undefined) return { rung: 'authenticate', message: 'the key was refused' };
  const hostKey = fingerprintOf(outcome.hostKey);
  return {
    rung: outcome.code === 0 ? 'done' : 'execute',
    hostKey,
    exitCode: outcome.code,
    stdout: outcome.stdout ?? '',
  };
}

function fingerprintOf(pem: string): string {
  const digest = createHash('sha256').update(parsed(pem).getPublicSSH()).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}

function parsed(pem: string): ParsedKey {
  const key = ssh2.utils.parseKey(pem);
  if (key instanceof Error) throw key;
  return key;
}
