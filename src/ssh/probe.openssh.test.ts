import { afterEach, expect, it } from 'vitest';
import type { SshTarget } from '../ports/ssh-probe.ts';
import { type OpenSshServer, startOpenSshServer } from './openssh-server.fixture.ts';
import { createSshProbe } from './probe.ts';
import { publicKeys } from './public-keys.fixture.ts';

const everyKey = Object.values(publicKeys);
const probe = createSshProbe();

let sshd: OpenSshServer;
afterEach(() => sshd.close());
const targetOf = (username: string): SshTarget => ({ host: '127.0.0.1', port: sshd.port, username });

it('OpenSSH accepts every type of key that it knows', async () => {
  sshd = await startOpenSshServer(everyKey);
  const result = await probe.probe(targetOf(sshd.username), everyKey, sshd.hostKeyFingerprint);
  expect(result, sshd.log()).toEqual({ ok: true, hostKeyFingerprint: sshd.hostKeyFingerprint });
});

it.each(Object.entries(publicKeys))('OpenSSH refuses %s when it does not know it', async (_type, line) => {
  sshd = await startOpenSshServer(everyKey.filter((known) => known !== line));
  const result = await probe.probe(targetOf(sshd.username), [line]);
  expect(result).toMatchObject({ ok: false, step: 'auth', keyIndex: 0 });
});

it('OpenSSH refuses a key for a user that it does not know', async () => {
  sshd = await startOpenSshServer(everyKey);
  const result = await probe.probe(targetOf('nobody-here'), everyKey);
  expect(result).toMatchObject({ ok: false, step: 'auth' });
});
