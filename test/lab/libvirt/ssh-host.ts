import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { generateKeyPair } from '../../support/processes/openssh.ts';
import type { LabHost } from './lab-host.ts';

/** The way to a host by OpenSSH, as an operator sets it up: a key, and the host's key in `known_hosts`. */
export interface SshWay extends AsyncDisposable {
  /** How Berth names the host's libvirt. */
  uri: string;
  /** How many logins there were. */
  logins(): number;
}

export async function openSshWay(host: LabHost): Promise<SshWay> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-lab-ssh-'));
  const [server, client] = [
    await generateKeyPair(folder, 'ed25519'),
    await generateKeyPair(folder, 'ed25519'),
  ];
  const file = (name: string, ...lines: string[]): string => {
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`, { mode: 0o600 });
    return join(folder, name);
  };
  const keys = file('authorized_keys', client.publicKey);
  const config = file(
    'sshd_config',
    ...[`HostKey ${server.file}`, `AuthorizedKeysFile ${keys}`, `ListenAddress ${host.address}`],
    ...['PermitRootLogin yes', 'PasswordAuthentication no', 'StrictModes no', 'PidFile none', 'UsePAM no'],
  );
  const known = file('known_hosts', `${host.address} ${server.publicKey}`);
  // These mounts are the lab's own. OpenSSH reads what is in there before anything of the machine's.
  execFileSync('mount', ['-t', 'tmpfs', 'lab', '/etc/ssh/ssh_config.d']);
  writeFileSync(
    '/etc/ssh/ssh_config.d/lab.conf',
    `Host ${host.address}\n  IdentityFile ${client.file}\n  UserKnownHostsFile ${known}\n`,
  );
  // Nor does what root's shell reads at each login on this machine belong to the host.
  host.run('mount', '-t', 'tmpfs', 'lab', '/root');
  host.run('mkdir', '-p', '/run/sshd');
  const daemon = spawn(...host.enter('/usr/sbin/sshd', '-D', '-e', '-f', config), {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  daemon.stderr.on('data', (part: Buffer) => {
    log += part.toString('utf8');
  });
  while (!(await answers(host.address, 22))) await sleep(100);
  return {
    uri: `qemu+ssh://root@${host.address}/system`,
    logins: () => log.split('Accepted publickey').length - 1,
    async [Symbol.asyncDispose]() {
      daemon.kill('SIGKILL');
      execFileSync('umount', ['/etc/ssh/ssh_config.d']);
      rmSync(folder, { recursive: true });
    },
  };
}

function answers(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  return once(socket, 'connect')
    .then(() => true)
    .catch(() => false)
    .finally(() => socket.destroy());
}
