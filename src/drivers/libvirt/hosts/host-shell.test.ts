import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { runHostScript } from './host-facts.ts';
import { type HostShell, openHostShell, openLogin } from './host-shell.ts';
import { useSsh } from './use-ssh.fixture.ts';

const awkward = ["it's", '$(id)', 'a b', '', '`x`', '"', '; exit 9', '*'];

/** The shell of a host, closed after the test. */
function openShell(options: { name: string; uri: string }): HostShell {
  const login = openLogin(options);
  onTestFinished(() => login.close());
  return openHostShell(options, login);
}

it.each(['qemu:///system', 'qemu+unix:///system?socket=/run/x'])(
  'a script gets its arguments by %s',
  async (uri) => {
    const shell = openShell({ name: 'kvm-1', uri });
    const output = await shell.run(`for a; do printf '<%s>' "$a"; done; echo oh >&2; exit 3`, awkward);
    expect(output).toEqual({ status: 3, stdout: awkward.map((one) => `<${one}>`).join(''), stderr: 'oh\n' });
  },
);

it('does the same through OpenSSH, with the user, port and key of the URI', async () => {
  // Prints its arguments, then runs the command line as a remote login shell would.
  useSsh(
    `while [ "$1" != -- ]; do printf '%s ' "$1" >&2; shift; done; printf '%s' "$2" >&2; exec sh -c "$3"`,
  );
  const shell = openShell({
    name: 'kvm-2',
    uri: 'qemu+ssh://berth@kvm-2.example:2222/system?keyfile=/etc/k',
  });
  const output = await shell.run(`for a; do printf '<%s>' "$a"; done; exit 3`, awkward);
  expect(output.status).toBe(3);
  expect(output.stdout).toBe(awkward.map((one) => `<${one}>`).join(''));
  expect(output.stderr).toContain('-o BatchMode=yes');
  expect(output.stderr).toContain('-l berth -p 2222 -i /etc/k kvm-2.example');
});

it('a host that OpenSSH cannot reach is unreachable', async () => {
  useSsh('echo "ssh: connect to host kvm-2 port 22: No route to host" >&2; exit 255');
  const shell = openShell({ name: 'kvm-2', uri: 'qemu+ssh://kvm-2/system' });
  await expect(shell.run('true', [])).rejects.toMatchObject({
    problem: 'unreachable',
    message: expect.stringContaining('No route'),
  });
});

it('the state folder keeps the marks of writers, by key', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'berth-state-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  const shell = openShell({ name: 'kvm-1', uri: 'qemu:///system' });
  const mark = async (...args: string[]) =>
    (await runHostScript(shell, { stateDir }, ['writer', ...args])).lines[0]?.[1];
  const text = `{"epoch":1,"by":"it's $(id) \\"a  b\\""}`;
  expect([await mark('k'), await mark('k', text), await mark('k-b'), await mark('k')]).toEqual([
    '',
    text,
    '',
    text,
  ]);
  expect([await mark('k', ''), await mark('k')]).toEqual(['', '']);
});

it('domains whose QEMU process a signal has stopped, and the free space of a disk [libvirt-halted]', async () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-root-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [index, state] of ['T', 'S', 't', 'D'].entries()) {
    write(`run/libvirt/qemu/berth-${state}.pid`, `${index + 1}`);
    write(`proc/${index + 1}/stat`, `${index + 1} (qemu (x) x86) ${state} 1 1 1 0\n`);
  }
  write('run/libvirt/qemu/berth-gone.pid', '99\n');
  write('images/a.qcow2', '');
  const shell = openShell({ name: 'kvm-1', uri: 'qemu:///system' });
  const { lines } = await runHostScript(shell, { stateDir: '/state', root }, ['machines', '/images/a.qcow2']);
  const halted = lines.filter(([kind]) => kind === 'halted').map(([, name]) => name);
  expect(halted.sort()).toEqual(['berth-T', 'berth-t']);
  expect(lines.at(-1)).toEqual([
    'exists',
    '/images/a.qcow2',
    expect.any(String),
    expect.stringMatching(/^\d+$/),
  ]);
});

it('a host that takes too long is unreachable', async () => {
  const shell = openShell({ name: 'kvm-1', uri: 'qemu:///system' });
  await expect(shell.run('kill -9 $$', [])).rejects.toMatchObject({ problem: 'unreachable' });
});
