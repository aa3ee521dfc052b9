import { afterAll, expect, it } from 'vitest';
import { Workstation } from '../../drivers/simulator/simulator.fixture.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

const user = new Workstation();
afterAll(() => user.close());

interface Shown {
  id: string;
  status: string;
  public_ip: string;
  ssh_port: number;
  ssh_username: string;
}

async function ask(sandbox: Sandbox, method: string, path: string, body?: object): Promise<Shown> {
  const { baseUrl, apiKey } = sandbox.provider('a');
  const response = await sandbox.fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Shown;
}

it('lets OpenSSH log in to a machine, which keeps its disk over a restore [sandbox-ssh]', async () => {
  const key = user.makeKey('mine', '-t', 'ed25519');
  user.makeKey('stranger', '-t', 'ed25519');
  await using sandbox = await createSandbox({ ssh: true });
  const offer = { configuration_id: 'a-cpu-8x32', region: 'us-dallas', ssh_keys: [key] };
  const { id } = await ask(sandbox, 'POST', '/instances', offer);
  await sandbox.clock.advance(60_000);
  const shown = await ask(sandbox, 'GET', `/instances/${id}`);
  expect(shown).toMatchObject({ status: 'ONLINE', public_ip: '127.0.0.1' });
  const at = { publicIp: shown.public_ip, sshPort: shown.ssh_port, sshUsername: shown.ssh_username };
  const run = (line: string, who = 'mine') => user.ssh(at, who, [line]);
  expect(await run('echo here > note && whoami')).toEqual({ status: 0, stdout: 'ubuntu\n', stderr: '' });
  expect(await run('whoami', 'stranger')).toMatchObject({ status: 255 });

  await sandbox.control.snapshots.take('running');
  await ask(sandbox, 'DELETE', `/instances/${id}`);
  await sandbox.clock.advance(60_000);
  expect(await run('whoami')).toMatchObject({ status: 255 });
  await sandbox.control.snapshots.restore('running');
  expect(await run('cat note')).toMatchObject({ status: 0, stdout: 'here\n' });
});
