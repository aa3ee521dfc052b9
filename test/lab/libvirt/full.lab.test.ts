import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { createSshProbe } from '../../../src/ssh/probe.ts';
import { nameOf } from '../lab-server.ts';
import { serveEachTest } from './serving.ts';

const MINUTE_MS = 60_000;
const UNITS = 4;
const lab = serveEachTest(UNITS);

it('is CONFORMANT at level full [libvirt-conformance]', async () => {
  await lab.server.expectConformant(
    '--poll-interval-ms',
    '1000',
    '--offer',
    'tiny',
    '--race',
    `tiny=${UNITS}`,
  );
  await lab.nothingIsLeft();
});

it('lets in each key of a Debian with its own cloud-init, which did all it was asked [libvirt-cloud-init]', async () => {
  lab.host.addImage('cloud-init');
  // The offer is sold from the inventory on that has seen its image.
  const isSold = async () =>
    JSON.stringify((await lab.server.client.request('GET', '/availability')).body).includes('"debian"');
  await expect.poll(isSold).toBe(true);
  const path = await lab.create({
    configuration_id: 'debian',
    cloud_init: {
      write_files: [
        { path: '/opt/mine.txt', content: `it's "mine" 東京\n`, owner: 'debian:debian', permissions: '0600' },
      ],
      runcmd: ['echo ran as $(id -un) >/opt/ran.txt'],
    },
  });
  const machine = await lab.online(path);
  for (const key of lab.server.keys)
    expect(await lab.login(machine, 'id -un', key)).toMatchObject({ stdout: 'debian\n' });
  // What runcmd does comes after the keys.
  const finished = 'cat /var/lib/cloud/instance/boot-finished';
  await expect
    .poll(async () => (await lab.login(machine, finished)).code, { timeout: 15 * MINUTE_MS })
    .toBe(0);
  const { stdout } = await lab.login(
    machine,
    'stat -c "%a %U" /opt/mine.txt; cat /opt/mine.txt /opt/ran.txt',
  );
  expect(stdout).toBe(`600 debian\nit's "mine" 東京\nran as root\n`);
  await lab.server.destroy(path);
  await lab.nothingIsLeft();
});

/** The moments of a machine, in seconds since its create was sent. */
const MOMENTS = ['platform', 'boot', 'SSH', 'keys'] as const;

it('sells ten at once as far as there are units; the others are sold out [libvirt-ten]', async () => {
  const { server } = lab;
  const began = performance.now();
  const replies = await Promise.all(
    Array.from({ length: 10 }, () =>
      server.client.request('POST', '/instances', { body: lab.server.request() }),
    ),
  );
  const paths = replies.flatMap(({ status, body }) => (status === 201 ? `/instances/${body['id']}` : []));
  const refused = replies.filter(({ status }) => status !== 201);
  const soldOut = { status: 409, body: { error: { code: 'capacity_unavailable' } } };
  expect(paths).toHaveLength(UNITS);
  expect(refused).toMatchObject(refused.map(() => soldOut));

  const seconds = await Promise.all(paths.map((path) => watch(path, began)));
  const lines = MOMENTS.map((moment) => {
    const sorted = seconds.map((one) => one[moment]).sort((a, b) => a - b);
    const at = (share: number) => `${sorted[Math.ceil(share * sorted.length) - 1]?.toFixed(1)} s`;
    return `${moment}: p50 ${at(0.5)}, p95 ${at(0.95)}`;
  });
  process.stdout.write(`${UNITS} of ten at once, since the create · ${lines.join(' · ')}\n`);
  await Promise.all(paths.map((path) => server.destroy(path)));
  await lab.nothingIsLeft();
});

/** When its power was on, its SSH greeted, its host key was proved, and each key of its owner: ONLINE. */
async function watch(path: string, began: number): Promise<Record<(typeof MOMENTS)[number], number>> {
  const { host, server } = lab;
  const when = async (isSo: () => boolean | Promise<boolean>): Promise<number> => {
    await expect.poll(isSo, { timeout: 20 * MINUTE_MS }).toBe(true);
    return (performance.now() - began) / 1000;
  };
  const online = server.client.waitFor(path, 'ONLINE').then(() => (performance.now() - began) / 1000);
  const platform = await when(() => host.virsh('list', '--name').includes(nameOf(path)));
  const sshPort = Number(/ host-port=["'](\d+)/.exec(host.virsh('dumpxml', nameOf(path)))?.[1]);
  const boot = await when(() => greets(host.address, sshPort));
  const SSH = await when(
    async () => (await probe({ host: host.address, port: sshPort, username: 'debian' }, [])).ok,
  );
  return { platform, boot, SSH, keys: await online };
}

const { probe } = createSshProbe();

/** Whether SSH says its first line there. */
async function greets(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: 5_000 });
  try {
    const [line] = await Promise.race([once(socket, 'data'), once(socket, 'timeout')]);
    return String(line).startsWith('SSH-');
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
