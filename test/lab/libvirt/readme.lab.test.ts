import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commandsOf, readPage, root, shellBlocksOf } from '../../documents/pages.ts';
import { type BareHost, GUESTS, openBareHost } from './lab-host.ts';

const blocks = shellBlocksOf(readPage('README.md'));
const [walkThrough = ''] = blocks.filter((block) => block.includes('ssh-keygen'));
const [ownMachine = ''] = blocks.filter((block) => block.includes('virsh'));
const EXAMPLE = join(root, 'examples/libvirt');

let host: BareHost;
beforeAll(async () => {
  host = await openBareHost(1, 'with-kvm');
  // Berth's database goes beside berth.yaml, and the reader writes an address into that: in a copy.
  host.run('cp', '-r', EXAMPLE, `${host.folder}/example`);
  host.run('mount', '--bind', `${host.folder}/example`, EXAMPLE);
  host.run('sed', '-i', `s/public_ip: .*/public_ip: ${host.address}/`, `${EXAMPLE}/berth.yaml`);
  // Its disk: memory, and as large as the disks of the offer.
  host.run('mount', '-o', 'remount,size=64g', '/var/lib/libvirt');
});
afterAll(() => host?.close());

/** What the lab has no Internet for: packages are there already, and the image is one of the lab's. */
const OFFLINE = [
  ['apt-get install -y --no-install-recommends', 'dpkg -s >/dev/null'],
  ['debian-12-genericcloud-amd64.qcow2', resolve(GUESTS, 'tiny.qcow2')],
] as const;

/** A text of the page, which has it. */
function replaced(text: string, replacements: readonly (readonly [string, string])[]): string {
  for (const [from] of replacements) if (!text.includes(from)) throw new Error(`README.md has no ${from}`);
  return replacements.reduce((made, [from, to]) => made.replaceAll(from, to), text);
}

it('README.md, "A machine of your own": its commands get a machine that is ONLINE and lets its owner in [libvirt-readme]', async () => {
  const commands = commandsOf(replaced(ownMachine, OFFLINE));
  const serve = commands.pop() ?? '';
  for (const command of commands) host.type(command);
  const doctor = host.type('npm run -s berth -- doctor --config examples/libvirt/berth.yaml');
  expect(doctor).not.toContain('BROKEN');
  expect(doctor).toContain(`hook on host this-host`);

  const child = spawn(...host.enter('sh', '-c', `cd '${root}'; ${serve}`), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text;
  });
  await expect.poll(() => printed).toMatch(/\bberth_\w+/);
  const [key = ''] = /\bberth_\w+/.exec(printed) ?? [];

  // "Then as above", in a terminal of its own.
  const ofWalk = commandsOf(
    replaced(walkThrough, [
      ['KEY=berth_…', `KEY=${key}`],
      ['h100-sxm-1x', 'small'],
      ['eu-frankfurt', 'home'],
      ['ubuntu@127.0.0.1 nvidia-smi -L', `debian@${host.address} id -un`],
    ]),
  );
  const commandLike = (pattern: RegExp): string => {
    const found = ofWalk.find((command) => pattern.test(command));
    if (found === undefined) throw new Error(`README.md has no command like ${pattern}`);
    return found;
  };
  const [variables, json] = [commandLike(/^export BASE/), commandLike(/^json\(\)/)];
  const login = commandLike(/^ssh -i/);
  const show = commandLike(/^curl -s -H .* \$BASE\/instances\/\$ID /);
  const remove = commandLike(/^curl .*-X DELETE/);
  const type = (command: string) =>
    host.run('sh', '-ec', `cd '${host.folder}'\n${variables}\n${json}\n${command}`);
  type(commandLike(/^ssh-keygen/));
  const { id, status } = JSON.parse(type(commandLike(/\/instances -d /)));
  expect(status).toBe('PROVISIONING');
  const machine = () => JSON.parse(type(`ID=${id}\n${show}`));
  await expect.poll(() => machine().status).toBe('ONLINE');
  expect(type(login.replace('<ssh_port>', machine().ssh_port))).toBe('debian\n');

  type(`ID=${id}\n${remove}`);
  await expect.poll(() => machine().error?.code).toBe('not_found');
  expect(host.run('virsh', 'list', '--all', '--name').trim()).toBe('');
});
