import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type OpenSshServer, startOpenSshServer } from '../../src/ssh/openssh-server.fixture.ts';
import { PATIENCE_MS } from '../../test/support/time/until.ts';
import { ssh2Client } from './ssh2-client.ts';

const client = ssh2Client();
const user = client.newKeyPair('berth conformance');

describe('OpenSSH', () => {
  let sshd: OpenSshServer;
  afterEach(() => sshd.close());

  const login = (command?: string, privateKey = user.privateKey) =>
    client.login({
      host: '127.0.0.1',
      port: sshd.port,
      username: sshd.username,
      privateKey,
      allowPrivate: true,
      timeoutMs: PATIENCE_MS,
      ...(command !== undefined && { command }),
    });

  it('lets the key in, runs the command, and prints the same fingerprint of its host key', async () => {
    sshd = await startOpenSshServer([user.publicKey]);
    expect(await login('printf "a b"; exit 7'), sshd.log()).toMatchObject({
      rung: 'done',
      exitCode: 7,
      stdout: 'a b',
      hostKey: sshd.hostKeyFingerprint,
    });
    expect(await login(), sshd.log()).toMatchObject({ rung: 'done', exitCode: 0, stdout: '' });
    expect(await login('yes')).toMatchObject({
      rung: 'execute',
      message: expect.stringContaining('cut off'),
    });
    expect(await login('kill -9 $$')).toMatchObject({
      rung: 'done',
      message: 'the command was ended by SIGKILL',
    });
  });

  it('refuses another key, and says what it accepts', async () => {
    sshd = await startOpenSshServer([user.publicKey]);
    const stranger = client.newKeyPair('stranger');
    expect(await login('true', stranger.privateKey)).toMatchObject({
      rung: 'authenticate',
      message: expect.stringMatching(/^the server refused the key for user .*; it accepts: publickey/),
    });
  });
});

it('makes key pairs that OpenSSH reads', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-conformance-key-'));
  try {
    const path = join(directory, 'id');
    writeFileSync(path, user.privateKey, { mode: 0o600 });
    const publicKey = execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' });
    expect(publicKey.trim()).toBe(user.publicKey);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
