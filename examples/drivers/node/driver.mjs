#!/usr/bin/env node
// A driver for Berth without a package: each machine is an OpenSSH server on this host, its disk a folder.
//
//     driver.mjs FOLDER [UNITS]    where the machines are kept, and how many there may be (4)
//
// Replace make … kill by calls to your platform; docs/how-to/driver-in-any-language.md tells what Berth asks.
import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const FOLDER = resolve(process.argv[2]);
const UNITS = Number(process.argv[3] ?? 4);
const can = { stop: true, resume: true, inventory: true, keeps_notes: true, create_visible_within_ms: 0 };
export const INFO = { protocol: 1, name: 'sshd-node', capabilities: can };
const sshdConfig = (folder, port) => `
ListenAddress 127.0.0.1:${port}
HostKey ${folder}/host_key
AuthorizedKeysFile ${folder}/authorized_keys
AuthenticationMethods publickey
StrictModes no
PidFile none
ForceCommand cd '${folder}/disk' && export HOME="$PWD" && exec sh -c "\${SSH_ORIGINAL_COMMAND:-exec sh -i}"
`;

const folderOf = (ref) => `${FOLDER}/${ref}`;
export const exists = (ref) => fs.existsSync(folderOf(ref));

/** One that the system gives to no other program: a stopped machine keeps its own. */
async function freePort() {
  const port = randomInt(20_000, 32_768);
  const probe = createServer().listen(port, '127.0.0.1');
  return once(probe, 'listening').then(
    () => probe.close() && port,
    () => freePort(),
  );
}

async function make({ ref, ssh_keys, note }) {
  const fresh = folderOf(`.new-${ref}`); // Renamed when it is complete: half a machine is none.
  fs.rmSync(fresh, { recursive: true, force: true });
  fs.mkdirSync(`${fresh}/disk`, { recursive: true });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', `${fresh}/host_key`]);
  const port = await freePort();
  fs.writeFileSync(`${fresh}/authorized_keys`, ssh_keys.join('\n'));
  fs.writeFileSync(`${fresh}/sshd_config`, sshdConfig(folderOf(ref), port));
  const endpoint = { public_ip: '127.0.0.1', ssh_port: port, ssh_username: userInfo().username };
  const known = { ref, created_at: Date.now(), note, endpoint };
  fs.writeFileSync(`${fresh}/machine.json`, JSON.stringify(known));
  fs.renameSync(fresh, folderOf(ref));
}

function observe(ref) {
  const known = JSON.parse(fs.readFileSync(`${folderOf(ref)}/machine.json`, 'utf8'));
  return { ...known, power: processes(ref).length > 0 ? 'running' : 'stopped' };
}

/** Its server and what has its disk as home (`ps e` shows the environment), with their children. */
function processes(ref, killed = []) {
  const printed = execFileSync('ps', ['axeww', '-o', 'pid=,ppid=,stat=,args='], { encoding: 'utf8' });
  const marks = [`-f ${folderOf(ref)}/sshd_config`, `HOME=${folderOf(ref)}/disk`];
  const rows = [...printed.matchAll(/^ *(\d+) +(\d+) +[^Z\s].*$/gm)];
  const isOwn = ([text, pid]) => killed.includes(pid) || marks.some((mark) => text.includes(mark));
  const own = rows.filter(isOwn).map(([, pid]) => pid);
  return rows.filter(([, pid, parent]) => own.includes(pid) || own.includes(parent)).map(([, pid]) => pid);
}

function start(ref) {
  const folder = folderOf(ref);
  execFileSync('/usr/sbin/sshd', ['-f', `${folder}/sshd_config`, '-E', `${folder}/console.log`]);
}

/** A process that ends loses its arguments first, and its port last. */
function kill(ref, killed = []) {
  const pids = processes(ref, killed);
  if (pids.length === 0) return;
  spawnSync('kill', ['-KILL', ...pids]);
  kill(ref, [...killed, ...pids]);
}

export const failed = (code, detail) => ({ outcome: 'failed', code, side_effect: 'none', detail });

export async function answer({ method, ref, spec }) {
  const refs = fs.readdirSync(FOLDER).filter((name) => !name.startsWith('.'));
  if (method === 'info') return INFO;
  if (method === 'list') return { answer: 'listed', items: refs.map(observe) };
  if (method === 'inventory') return { answer: 'counted', free: Math.max(0, UNITS - refs.length) };
  if (method === 'get') return exists(ref) ? { answer: 'observed', value: observe(ref) } : { answer: 'gone' };
  if (method === 'destroy') {
    kill(ref);
    fs.rmSync(folderOf(ref), { recursive: true, force: true });
    return { outcome: 'done', value: null };
  }
  // Each step may come again: what is there already is not made anew.
  if (method === 'create' && !exists(ref)) {
    if (refs.length >= UNITS) return failed('capacity', `all ${UNITS} units are taken`);
    await make(spec);
  }
  if (!exists(ref)) return failed('gone', `there is no machine ${ref}`);
  if (method === 'stop') kill(ref);
  else if (processes(ref).length === 0) start(ref);
  // A platform that takes longer: { outcome: 'pending', progress: { phase: 'booting' } }, and Berth asks again.
  return { outcome: 'done', value: observe(ref) };
}

export async function reply(request, answer) {
  try {
    return { id: request.id, result: await answer(request) };
  } catch (error) {
    return { id: request.id, error: error.message }; // Berth takes the outcome for unknown, and looks.
  }
}

/** One request after another, until Berth closes the input: the driver is to end then. */
export async function serve(answer) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await reply(JSON.parse(line), answer))}\n`);
}

fs.mkdirSync(FOLDER, { recursive: true });
if (userInfo().username === 'root') fs.mkdirSync('/run/sshd', { recursive: true });
if (fs.realpathSync(process.argv[1]) === import.meta.filename) await serve(answer);
