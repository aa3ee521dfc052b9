#!/usr/bin/env node
// A driver for Berth in JavaScript, without a package: each machine is an OpenSSH server on this host, its disk a folder.
//
//     driver.mjs FOLDER [UNITS]
//
// FOLDER keeps the machines, UNITS (default 4) is how many of them there may be. Replace `machine` by calls to your platform.
// docs/how-to/driver-in-any-language.md says what each request asks for; full-driver.mjs adds volumes, and HTTP.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const FOLDER = resolve(process.argv[2]);
const UNITS = Number(process.argv[3] ?? 4);
const { username } = userInfo();
const CAPABILITIES = {
  ...{ stop: true, resume: true, restart: false, attach_volume: 'none', resize_volume: 'none' },
  ...{ create_visible_within_ms: 0, keeps_notes: true, cloud_init_bytes: 0, inventory: true },
};
export const INFO = { protocol: 1, name: 'sshd-node', login_user: username, capabilities: CAPABILITIES };
export const namesIn = (folder) =>
  fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => !name.startsWith('.')) : [];
export const done = (value) => ({ outcome: 'done', value });
export const failed = (code, detail) => ({ outcome: 'failed', code, side_effect: 'none', detail });

/** What a platform would do: one folder a machine, `sshd` in it while the machine runs. */
export const machine = (ref) => {
  const folder = `${FOLDER}/${ref}`;
  /** Its server, and the sessions below that. */
  const processes = () => {
    const printed = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' });
    const all = printed
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+(\d+)\s+/));
    const found = all.filter(([, , args]) => args.includes(`-f ${folder}/sshd_config`)).map(([pid]) => pid);
    for (const parent of found) found.push(...all.filter(([, of]) => of === parent).map(([pid]) => pid));
    return found;
  };
  return {
    exists: () => fs.existsSync(folder),
    async make(spec) {
      const port = await freePort();
      const fresh = `${FOLDER}/.new-${ref}`; // Renamed when it is complete: half a machine is none.
      fs.rmSync(fresh, { recursive: true, force: true });
      fs.mkdirSync(`${fresh}/disk`, { recursive: true });
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', `${fresh}/host_key`]);
      const printed = execFileSync('ssh-keygen', ['-lf', `${fresh}/host_key.pub`], { encoding: 'utf8' });
      fs.writeFileSync(`${fresh}/authorized_keys`, `${spec.ssh_keys.join('\n')}\n`);
      fs.writeFileSync(
        `${fresh}/sshd_config`,
        `ListenAddress 127.0.0.1:${port}
HostKey ${folder}/host_key
AuthorizedKeysFile ${folder}/authorized_keys
AuthenticationMethods publickey
StrictModes no
PidFile none
ForceCommand cd '${folder}/disk' && exec sh -c "\${SSH_ORIGINAL_COMMAND:-exec sh -i}"
`,
      );
      const address = { public_ip: '127.0.0.1', ssh_port: port, ssh_username: username };
      const endpoint = { ...address, host_key_fingerprint: printed.split(' ')[1] };
      const known = { ref, created_at: Date.now(), note: spec.note, endpoint };
      fs.writeFileSync(`${fresh}/machine.json`, JSON.stringify(known));
      fs.renameSync(fresh, folder);
    },
    async observe() {
      const known = JSON.parse(fs.readFileSync(`${folder}/machine.json`, 'utf8'));
      return { ...known, power: (await answers(known.endpoint.ssh_port)) ? 'running' : 'stopped' };
    },
    start() {
      if (processes().length > 0) return;
      // In a session of its own: what is in this driver's process group ends with the driver.
      const log = fs.openSync(`${folder}/console.log`, 'a');
      const options = { detached: true, stdio: ['ignore', log, log] };
      spawn('/usr/sbin/sshd', ['-D', '-e', '-f', `${folder}/sshd_config`], options).unref();
    },
    stop() {
      for (let pids = processes(); pids.length > 0; pids = processes()) spawnSync('kill', ['-KILL', ...pids]);
    },
    destroy() {
      this.stop();
      fs.rmSync(folder, { recursive: true });
    },
  };
};

/** A step that was begun is pending until it is seen to be over. */
async function seen(power, it) {
  const now = await it.observe();
  return now.power === power ? done(now) : { outcome: 'pending', cookie: power, poll_after_ms: 100 };
}

export const late = ({ expires_at }) =>
  Date.now() > expires_at ? failed('transient', 'the request came too late and was not begun') : undefined;

export async function answer(request) {
  const { method, ref = '', spec, offers } = request;
  const it = machine(ref);
  const refs = namesIn(FOLDER);
  if (method === 'info') return INFO;
  if (method === 'list')
    return { answer: 'listed', items: await Promise.all(refs.map((each) => machine(each).observe())) };
  if (method === 'get')
    return it.exists() ? { answer: 'observed', value: await it.observe() } : { answer: 'gone' };
  if (method === 'inventory') {
    const units = Math.max(0, UNITS - refs.length);
    const free = offers.flatMap(({ offer_id, datacenters }) =>
      datacenters.map((datacenter) => ({ offer_id, datacenter, units })),
    );
    return { answer: 'counted', free };
  }
  const tooLate = late(request);
  if (tooLate) return tooLate;
  if (method === 'destroy') {
    if (it.exists()) it.destroy();
    return done(null);
  }
  if (method === 'create' && !it.exists()) {
    if (refs.length >= UNITS) return failed('capacity', `all ${UNITS} units are taken`);
    await it.make(spec);
  }
  if (!it.exists()) return failed('gone', `there is no machine ${ref}`);
  if (method === 'stop') it.stop();
  else it.start();
  return seen(method === 'stop' ? 'stopped' : 'running', it);
}

const freePort = () =>
  new Promise((settle) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => settle(port));
    });
  });

const answers = (port) =>
  new Promise((settle) => {
    const socket = connect(port, '127.0.0.1').on('error', () => settle(false));
    socket.on('connect', () => settle(true) || socket.destroy());
  });

export async function reply(request, answer) {
  try {
    return { id: request.id, result: await answer(request) };
  } catch (error) {
    process.stderr.write(`${request.method} failed: ${error.message}\n`);
    return { id: request.id, error: error.message }; // Berth takes the outcome for unknown, and looks.
  }
}

/** One request after another, until Berth closes the input. */
export async function serve(answer) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await reply(JSON.parse(line), answer))}\n`);
}

fs.mkdirSync(FOLDER, { recursive: true });
if (username === 'root') fs.mkdirSync('/run/sshd', { recursive: true });
if (fs.realpathSync(process.argv[1]) === import.meta.filename) await serve(answer);
