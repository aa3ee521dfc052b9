import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { fingerprintOf } from './query.ts';

const SSHD = '/usr/sbin/sshd';

export interface OpenSshServer {
  port: number;
  username: string;
  hostKeyFingerprint: string;
  log(): string;
  close(): Promise<void>;
}

/** OpenSSH's own sshd in inetd mode, one process per connection, that accepts `authorizedKeys`. */
export async function startOpenSshServer(authorizedKeys: readonly string[]): Promise<OpenSshServer> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-sshd-'));
  const path = (name: string): string => join(directory, name);
  const hostKey = ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 });
  writeFileSync(path('host_key'), hostKey.private, { mode: 0o600 });
  writeFileSync(path('authorized_keys'), `${authorizedKeys.join('\n')}\n`, { mode: 0o600 });
  const config = {
    HostKey: path('host_key'),
    AuthorizedKeysFile: path('authorized_keys'),
    StrictModes: 'no',
    PermitRootLogin: 'yes',
  };
  writeFileSync(
    path('config'),
    Object.entries({ ...config, LogLevel: 'VERBOSE' })
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  );
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });

  let log = '';
  const exits = new Set<Promise<void>>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    const child = spawn(SSHD, ['-i', '-e', '-f', path('config')], { stdio: [socket, socket, 'pipe'] });
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    exits.add(new Promise((resolve) => child.once('close', () => resolve())));
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const publicKey = ssh2.utils.parseKey(hostKey.public);
  if (publicKey instanceof Error) throw publicKey;
  return {
    port: (server.address() as AddressInfo).port,
    username: userInfo().username,
    hostKeyFingerprint: fingerprintOf(publicKey.getPublicSSH()),
    log: () => log,
    async close() {
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(exits);
      rmSync(directory, { recursive: true });
    },
  };
}
