#!/usr/bin/env node
// A driver for Berth in JavaScript, without a package: each machine is an OpenSSH server on this host, its disk a folder. A
// volume is a folder too, which a machine that has it finds in its home as volumes/REF.
//
//     driver.mjs FOLDER [UNITS]                    over standard input and output, as `command:`
//     driver.mjs FOLDER [UNITS] --listen PORT      over HTTP on this host, as `url:`; BERTH_DRIVER_TOKEN is its token
//
// docs/how-to/driver-in-any-language.md says what each request asks for. Replace what stands in `machine` and
// `volume` by calls to your platform.
import { execFileSync, spawn } from 'node:child_process';
import { timingSafeEqual } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [place, units = '4', flag, port] = process.argv.slice(2);
const FOLDER = resolve(place);
const { username } = userInfo();
const CAPABILITIES = {
  ...{ stop: true, resume: true, restart: false, attach_volume: 'hot', resize_volume: 'attached' },
  ...{ create_visible_within_ms: 0, keeps_notes: true, cloud_init_bytes: 0, inventory: true },
};
const namesIn = (folder) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : [];
const refs = () => namesIn(FOLDER);
const done = (value) => ({ outcome: 'done', value });
const failed = (code, detail) => ({ outcome: 'failed', code, side_effect: 'none', detail });

/** What a platform would do: one folder a machine, `sshd` in it while the machine runs. */
const machine = (ref) => {
  const at = (name) => `${FOLDER}/${ref}/${name}`;
  const known = () => JSON.parse(readFileSync(at('machine.json'), 'utf8'));
  const pids = () =>
    execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(`-f ${at('sshd_config')}`))
      .map((line) => Number.parseInt(line, 10));
  return {
    exists: () => existsSync(at('machine.json')),
    async make(spec) {
      const own = await freePort();
      const fresh = `${FOLDER}/.new-${ref}`; // Moved to its place when it is complete.
      rmSync(fresh, { recursive: true, force: true });
      mkdirSync(`${fresh}/disk`, { recursive: true });
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', `${fresh}/host_key`]);
      const printed = execFileSync('ssh-keygen', ['-lf', `${fresh}/host_key.pub`], { encoding: 'utf8' });
      writeFileSync(`${fresh}/authorized_keys`, `${spec.ssh_keys.join('\n')}\n`);
      writeFileSync(
        `${fresh}/sshd_config`,
        [
          `ListenAddress 127.0.0.1:${own}`,
          `HostKey ${at('host_key')}`,
          `PidFile ${at('sshd.pid')}`,
          `AuthorizedKeysFile ${at('authorized_keys')}`,
          'StrictModes no',
          'PermitRootLogin prohibit-password',
          'PasswordAuthentication no',
          'KbdInteractiveAuthentication no',
          `ForceCommand cd '${at('disk')}' && exec sh -c "\${SSH_ORIGINAL_COMMAND:-exec sh -i}"`,
          '',
        ].join('\n'),
      );
      const fields = {
        created_at: Date.now(),
        note: spec.note,
        port: own,
        fingerprint: printed.split(' ')[1],
      };
      writeFileSync(`${fresh}/machine.json`, JSON.stringify(fields));
      renameSync(fresh, `${FOLDER}/${ref}`);
    },
    async start() {
      if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
      if (pids().length === 0) {
        const log = openSync(at('console.log'), 'a');
        // In a session of its own: what is in this driver's process group ends with the driver.
        spawn('/usr/sbin/sshd', ['-D', '-e', '-f', at('sshd_config')], {
          detached: true,
          stdio: ['ignore', log, log],
        }).unref();
      }
      for (let look = 0; look < 100 && !(await answers(known().port)); look++) await sleep(20);
    },
    async stop() {
      for (let found = pids(); found.length > 0; found = pids()) {
        try {
          for (const pid of found) process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended meanwhile.
        }
        await sleep(20);
      }
    },
    async observe() {
      const { created_at, note, port: own, fingerprint } = known();
      const endpoint = {
        public_ip: '127.0.0.1',
        ssh_port: own,
        ssh_username: username,
        host_key_fingerprint: fingerprint,
      };
      return { ref, power: (await answers(own)) ? 'running' : 'stopped', created_at, note, endpoint };
    },
    destroy() {
      for (const each of namesIn(VOLUMES)) volume(each).detach(ref);
      rmSync(`${FOLDER}/${ref}`, { recursive: true, force: true });
    },
  };
};

const VOLUMES = `${FOLDER}/.volumes`;
const volume = (ref) => {
  const at = (name) => `${VOLUMES}/${ref}/${name}`;
  const link = (to) => `${FOLDER}/${to}/disk/volumes/${ref}`;
  const known = () => JSON.parse(readFileSync(at('volume.json'), 'utf8'));
  const change = (fields) => {
    writeFileSync(at('volume.json.new'), JSON.stringify({ ...known(), ...fields }));
    renameSync(at('volume.json.new'), at('volume.json'));
  };
  const it = {
    exists: () => existsSync(at('volume.json')),
    observe: known,
    make({ size_gb, note }) {
      const fresh = `${VOLUMES}/.new-${ref}`;
      rmSync(fresh, { recursive: true, force: true });
      mkdirSync(`${fresh}/data`, { recursive: true });
      const fields = { ref, created_at: Date.now(), size_gb, note, attached_to: [] };
      writeFileSync(`${fresh}/volume.json`, JSON.stringify(fields));
      renameSync(fresh, `${VOLUMES}/${ref}`);
    },
    resize: (size_gb) => change({ size_gb }),
    // The record first: a link without one would never be removed.
    attach(to) {
      change({ attached_to: [...new Set([...known().attached_to, to])] });
      mkdirSync(`${FOLDER}/${to}/disk/volumes`, { recursive: true });
      rmSync(link(to), { force: true });
      symlinkSync(at('data'), link(to));
    },
    detach(from) {
      rmSync(link(from), { force: true });
      change({ attached_to: known().attached_to.filter((each) => each !== from) });
    },
    destroy() {
      for (const each of known().attached_to) it.detach(each);
      rmSync(`${VOLUMES}/${ref}`, { recursive: true });
    },
  };
  return it;
};

const LATE = failed('transient', 'the request came too late and was not begun');

function answerVolume({ method, ref = '', expires_at, spec, size_gb, machine: to }) {
  const it = volume(ref);
  if (method === 'volumes.list')
    return { answer: 'listed', items: namesIn(VOLUMES).map((each) => volume(each).observe()) };
  if (method === 'volumes.get')
    return it.exists() ? { answer: 'observed', value: it.observe() } : { answer: 'gone' };
  if (Date.now() > expires_at) return LATE;
  if (method === 'volumes.destroy') {
    if (it.exists()) it.destroy();
    return done(null);
  }
  if (method === 'volumes.create') {
    if (!it.exists()) it.make(spec);
    return done(it.observe());
  }
  if (!it.exists()) return failed('gone', `there is no volume ${ref}`);
  if (method === 'volumes.resize') {
    if (size_gb < it.observe().size_gb) return failed('invalid', 'a volume does not shrink');
    it.resize(size_gb);
    return done(it.observe());
  }
  if (method === 'volumes.attach' && !machine(to).exists())
    return failed('gone', `there is no machine ${to}`);
  if (method === 'volumes.attach') it.attach(to);
  else it.detach(to);
  return done(null);
}

async function look(method, it, offers) {
  if (method === 'list')
    return { answer: 'listed', items: await Promise.all(refs().map((each) => machine(each).observe())) };
  if (method === 'get')
    return it.exists() ? { answer: 'observed', value: await it.observe() } : { answer: 'gone' };
  if (method === 'inventory') {
    const free = Math.max(0, Number(units) - refs().length);
    const each = ({ offer_id, datacenters }) =>
      datacenters.map((datacenter) => ({ offer_id, datacenter, units: free }));
    return { answer: 'counted', free: offers.flatMap(each) };
  }
  return undefined;
}

async function answer(request) {
  const { method, ref = '', expires_at, spec, offers, protocols } = request;
  if (method.startsWith('volumes.')) return answerVolume(request);
  const it = machine(ref);
  const when = async (power) => {
    const now = await it.observe();
    return now.power === power ? done(now) : { outcome: 'pending', cookie: power, poll_after_ms: 200 };
  };
  if (method === 'info') {
    if (!protocols.includes(1)) throw new Error(`this driver speaks version 1, and not one of ${protocols}`);
    return { protocol: 1, name: 'sshd-node', login_user: username, capabilities: CAPABILITIES };
  }
  const seen = await look(method, it, offers);
  if (seen !== undefined) return seen;
  if (Date.now() > expires_at) return LATE;
  if (method === 'destroy') {
    if (it.exists()) await it.stop();
    it.destroy();
    return done(null);
  }
  if (method === 'create') {
    if (!it.exists() && refs().length >= Number(units))
      return failed('capacity', `all ${units} units are taken`);
    if (!it.exists()) await it.make(spec);
    await it.start();
    return when('running');
  }
  if (!it.exists()) return failed('gone', `there is no machine ${ref}`);
  if (method === 'stop') {
    await it.stop();
    return when('stopped');
  }
  if (method === 'start') {
    await it.start();
    return when('running');
  }
  return failed('unsupported', `this driver has no ${method}`);
}

const queues = new Map();
/** One request after another for each machine; those about different machines run side by side. */
async function reply(request) {
  const key = request.method === 'create' ? 'create' : (request.ref ?? request.id);
  const turn = Promise.all([queues.get(key), queues.get(request.ref)]).then(() => answer(request));
  const settled = turn.catch(() => undefined);
  for (const name of [key, request.ref]) queues.set(name, settled);
  try {
    return { id: request.id, result: await turn };
  } catch (error) {
    process.stderr.write(`${request.method} failed: ${error.message}\n`);
    return { id: request.id, error: error.message };
  }
}

async function freePort() {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await new Promise((ready) => server.once('listening', ready));
  const own = server.address().port;
  await new Promise((closed) => server.close(closed));
  return own;
}

const answers = (own) =>
  new Promise((settle) => {
    const socket = connect(own, '127.0.0.1', () => settle(true)).once('error', () => settle(false));
    socket.once('connect', () => socket.destroy());
  });

function isAllowed(header = '') {
  const expected = Buffer.from(`Bearer ${process.env.BERTH_DRIVER_TOKEN ?? ''}`);
  const given = Buffer.from(header);
  return (
    !process.env.BERTH_DRIVER_TOKEN || (given.length === expected.length && timingSafeEqual(given, expected))
  );
}

mkdirSync(FOLDER, { recursive: true });
if (flag === '--listen') {
  const server = createServer(async (incoming, outgoing) => {
    if (!isAllowed(incoming.headers.authorization)) return outgoing.writeHead(401).end();
    const chunks = await incoming.toArray();
    const text = JSON.stringify(await reply(JSON.parse(Buffer.concat(chunks))));
    outgoing.writeHead(200, { 'Content-Type': 'application/json' }).end(text);
  });
  server.listen(Number(port), '127.0.0.1', () =>
    process.stdout.write(`http://127.0.0.1:${server.address().port}/\n`),
  );
} else {
  const send = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
  createInterface({ input: process.stdin }).on('line', async (line) => send(await reply(JSON.parse(line))));
}
