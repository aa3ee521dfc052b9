#!/usr/bin/env node
// A small provider orchestrator in plain Node, written from the contract's text alone; it shares no code with Berth.
// Its machines are OpenSSH servers behind one address: an instance says by port_forwards where its port 22 is. They greet
// whoever logs in.
//
//   PROVIDER_API_KEY=… node orchestrator.mjs [--port N] [--fault keeps-running|key-by-prefix]
//
// prints {"base_url": …} once it listens; SIGTERM ends it and its machines.
//
//   keeps-running   a stopped instance reads STOPPED, and its machine runs on
//   key-by-prefix   a credential is accepted if it begins with the API key
import { execFile, spawn } from 'node:child_process';
import { randomUUID, timingSafeEqual } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';

const { values: flags } = parseArgs({
  options: { port: { type: 'string', default: '0' }, fault: { type: 'string' } },
});
if (![undefined, 'keeps-running', 'key-by-prefix'].includes(flags.fault))
  throw new Error(`there is no fault ${flags.fault}`);
const apiKey = process.env.PROVIDER_API_KEY;
if (!apiKey) throw new Error('PROVIDER_API_KEY is not set');

const IMAGES = ['ubuntu-24.04'];
const common = { vcpus: 16, memory_gb: 128, os_options: IMAGES, supports_cloud_init: false };
const offers = [
  {
    ...common,
    id: 'dedicated-a100',
    name: 'A100',
    instance_type: 'DEDICATED',
    storage_gb: 500,
    gpu_count: 1,
    gpu_type: 'A100',
    gpu_memory_gb: 80,
    price_per_hour: 0.8,
    regions: ['1-berlin'],
    units: 3,
  },
  {
    ...common,
    id: 'dedicated-b200',
    name: 'B200',
    instance_type: 'DEDICATED',
    storage_gb: 2000,
    price_per_hour: 5.5,
    regions: ['1-berlin', '2-paris'],
    units: 0,
  },
];
const instances = new Map();
const folder = mkdtempSync(join(tmpdir(), 'orchestrator-'));

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

// == machines

async function makeMachine(id, keys) {
  const home = join(folder, id, 'home');
  mkdirSync(home, { recursive: true });
  const at = (name) => join(folder, id, name);
  await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at('host_key')]);
  writeFileSync(at('keys'), `${keys.join('\n')}\n`, { mode: 0o600 });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's.
  const command = 'exec sh -c "${SSH_ORIGINAL_COMMAND:-sh}"';
  const login = `#!/bin/sh\necho 'Welcome to Berlin.'\ncd '${home}' && ${command}\n`;
  writeFileSync(at('login'), login, { mode: 0o755 });
  return { at, port: 0, process: undefined };
}

/** Resolves once the SSH endpoint of the machine answers. */
async function run(machine) {
  for (;;) {
    machine.port ||= await freePort();
    const options = {
      Port: machine.port,
      ListenAddress: '127.0.0.1',
      HostKey: machine.at('host_key'),
      AuthorizedKeysFile: machine.at('keys'),
      ForceCommand: machine.at('login'),
      SetEnv: `HOME=${machine.at('home')}`,
      StrictModes: 'no',
      PidFile: 'none',
      PasswordAuthentication: 'no',
      KbdInteractiveAuthentication: 'no',
    };
    const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const args = ['-D', '-e', '-f', '/dev/null', ...given];
    machine.process = spawn('/usr/sbin/sshd', args, { stdio: 'ignore', detached: true });
    while (machine.process.exitCode === null) {
      if (await answers(machine.port)) return;
      await sleep(50);
    }
    // Somebody else has the port.
    machine.port = 0;
  }
}

async function halt(machine) {
  const { process: server } = machine;
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => server.once('exit', resolve));
  process.kill(-server.pid, 'SIGTERM');
  await ended;
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

async function freePort() {
  const server = createTcpServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// == instances

const isAlive = ({ record }) => record.status !== 'DESTROYED';
const free = ({ id, units }) =>
  units - [...instances.values()].filter((one) => isAlive(one) && one.record.configuration_id === id).length;

function offersShown() {
  return offers.map(({ units, ...offer }) => ({ ...offer, available: free({ ...offer, units }) > 0 }));
}

function move({ record }, status) {
  Object.assign(record, { status, updated_at: new Date().toISOString() });
}

/** What an instance does, it does in turn: a DELETE follows the boot that is under way. */
function then(instance, step) {
  instance.last = instance.last.then(() => sleep(300)).then(step);
}

function create(body) {
  check(body);
  const { configuration_id, region, ssh_keys, name, operating_system_image: image = IMAGES[0] } = body;
  const offer = offers.find(({ id }) => id === configuration_id);
  if (free(offer) < 1) throw new Refusal(409, 'capacity_unavailable', 'No unit of this offer is free.');
  const id = randomUUID();
  const created_at = new Date().toISOString();
  const instance = {
    record: {
      id,
      ...(name !== undefined && { name }),
      configuration_id,
      region,
      status: 'PROVISIONING',
      image,
      created_at,
      updated_at: created_at,
    },
    last: Promise.resolve(),
  };
  instances.set(id, instance);
  then(instance, async () => {
    instance.machine = await makeMachine(id, ssh_keys);
    await run(instance.machine);
    if (instance.record.status !== 'PROVISIONING') return;
    nameEndpoint(instance);
    move(instance, 'ONLINE');
  });
  return instance.record;
}

function nameEndpoint({ record, machine }) {
  Object.assign(record, {
    public_ip: '127.0.0.1',
    ssh_username: userInfo().username,
    port_forwards: [{ internal_port: 22, external_port: machine.port }],
  });
}

function check(body) {
  const need = (holds, message) => {
    if (!holds) throw new Refusal(400, 'invalid_request', message);
  };
  need(typeof body === 'object' && body !== null && !Array.isArray(body), 'The body is a JSON object.');
  const offer = offers.find(({ id }) => id === body.configuration_id);
  need(offer, 'configuration_id names no offer.');
  need(offer.regions.includes(body.region), 'The offer is not sold in that region.');
  need(Array.isArray(body.ssh_keys) && body.ssh_keys.length > 0, 'ssh_keys has at least one key.');
  need(body.ssh_keys.every(isPublicKey), 'ssh_keys has a text that is no OpenSSH public key.');
  need(body.name === undefined || typeof body.name === 'string', 'name is a text.');
  need(IMAGES.includes(body.operating_system_image ?? IMAGES[0]), 'There is no such image.');
  const size = body.root_disk_size_gb ?? offer.storage_gb;
  need(typeof size === 'number' && size > 0, 'root_disk_size_gb is a number.');
  need(body.cloud_init === undefined, 'The offer does not support cloud_init.');
  const volumes = body.volume_ids ?? [];
  need(Array.isArray(volumes) && volumes.length === 0, 'There are no volumes here.');
}

/** `type base64 comment`, where the base64 begins with the type. */
function isPublicKey(text) {
  const [type, data = ''] = typeof text === 'string' && !/[\r\n]/.test(text.trim()) ? text.split(' ') : [];
  const bytes = Buffer.from(data, 'base64');
  return bytes.length > 4 && bytes.subarray(4, 4 + bytes.readUInt32BE()).toString() === type;
}

function stop(instance) {
  if (instance.record.status !== 'ONLINE') throw inWrongState(instance, 'stopped');
  move(instance, 'STOPPING');
  then(instance, async () => {
    if (flags.fault !== 'keeps-running') await halt(instance.machine);
    if (instance.record.status === 'STOPPING') move(instance, 'STOPPED');
  });
}

function start(instance) {
  if (instance.record.status !== 'STOPPED') throw inWrongState(instance, 'started');
  then(instance, async () => {
    if (flags.fault !== 'keeps-running') await run(instance.machine);
    if (instance.record.status !== 'STOPPED') return;
    nameEndpoint(instance);
    move(instance, 'ONLINE');
  });
}

const inWrongState = ({ record }, wanted) =>
  new Refusal(409, 'invalid_state', `The instance is ${record.status} and cannot be ${wanted}.`);

function destroy(instance) {
  if (instance.record.status === 'DESTROYING') return;
  move(instance, 'DESTROYING');
  then(instance, async () => {
    await halt(instance.machine);
    rmSync(join(folder, instance.record.id), { recursive: true });
    move(instance, 'DESTROYED');
  });
}

function find(id) {
  const instance = instances.get(id);
  if (instance === undefined || !isAlive(instance))
    throw new Refusal(404, 'not_found', 'There is no instance with this id.');
  return instance;
}

// == HTTP

function isAuthorized(given = '') {
  const wanted = `Bearer ${apiKey}`;
  if (flags.fault === 'key-by-prefix') return given.startsWith(wanted);
  return given.length === wanted.length && timingSafeEqual(Buffer.from(given), Buffer.from(wanted));
}

/** Returns the status and the body of the answer. */
function answer({ method, url, headers }, text) {
  const { pathname, searchParams: query } = new URL(url, 'http://orchestrator.invalid');
  if (!isAuthorized(headers.authorization))
    throw new Refusal(401, 'unauthorized', 'Send the API key as a bearer credential.');
  const [, base, resource, id, action, ...more] = pathname.split('/');
  const region = query.get('region');
  const route = `${method} ${[resource, ...(id === undefined ? [] : ['*']), ...(action === undefined ? [] : [action])].join('/')}`;
  if (base === 'v1' && more.length === 0)
    switch (route) {
      case 'GET configurations': {
        const type = query.get('instance_type');
        if (type !== null && !['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER'].includes(type))
          throw new Refusal(400, 'invalid_request', 'There is no such instance_type.');
        const all = offersShown();
        return [200, { configurations: all.filter((offer) => [null, offer.instance_type].includes(type)) }];
      }
      case 'GET availability': {
        const now = offersShown().filter(({ available }) => available);
        return [
          200,
          { configurations: now.filter(({ regions }) => region === null || regions.includes(region)) },
        ];
      }
      case 'GET instances': {
        const alive = [...instances.values()].filter(isAlive).map(({ record }) => record);
        return [200, { instances: alive.filter((record) => [null, record.region].includes(region)) }];
      }
      case 'POST instances':
        return [201, create(bodyOf(headers, text))];
      case 'GET instances/*':
        return [200, find(id).record];
      case 'DELETE instances/*':
      case 'POST instances/*/stop':
      case 'POST instances/*/start': {
        const instance = find(id);
        ({ stop, start })[action]?.(instance);
        if (action === undefined) destroy(instance);
        return [200, instance.record];
      }
    }
  throw new Refusal(404, 'not_found', 'There is no such endpoint.');
}

function bodyOf(headers, text) {
  if (!/^application\/json\s*(;|$)/.test(headers['content-type'] ?? ''))
    throw new Refusal(400, 'invalid_request', 'The body has to be application/json.');
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, 'invalid_json', 'The body cannot be parsed.');
  }
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let status = 500;
  let body = { error: { code: 'internal', message: 'It is our fault.' } };
  try {
    [status, body] = answer(request, Buffer.concat(chunks).toString());
  } catch (error) {
    if (error instanceof Refusal) {
      status = error.status;
      body = { error: { code: error.code, message: error.message } };
    } else process.stderr.write(`${error.stack}\n`);
  }
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});
if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
server.listen(Number(flags.port), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ base_url: `http://127.0.0.1:${server.address().port}/v1` })}\n`);
});
process.once('SIGTERM', async () => {
  server.close();
  server.closeAllConnections();
  for (const { last, machine } of instances.values()) {
    await last;
    if (machine !== undefined) await halt(machine);
  }
  rmSync(folder, { recursive: true });
});
