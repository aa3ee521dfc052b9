import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createClient, until } from '../support/http/http-client.ts';
import { faultsOf, readLedger } from '../support/ledger.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';

/** More room than the database takes (1 MB) with its journal, which SQLite uses again from 4 MB on. */
const DISK = '16m';
const LITTLE_BYTES = 512 * 1024;
/** Longer than two of the writes that are tried every three seconds. */
const TWO_TRIES_MS = 7_000;

/** A way to have no room for the database, and to have it again. */
interface Shortage {
  name: string;
  /** Before the server starts; false: not permitted here. */
  prepare(data: string): boolean;
  begin(data: string, pid: number): void;
  /** Takes the room that the server has freed since, such as that of its journal. */
  goOn?(data: string): void;
  /** Leaves room for less than a transaction may take. */
  leaveLittle?(data: string): void;
  end(data: string, pid: number): void;
  cleanUp(data: string): void;
}

function isPossible(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function fill(data: string): void {
  const write = (): void => {
    for (;;) appendFileSync(join(data, 'filler'), Buffer.alloc(4096));
  };
  expect(write).toThrow('ENOSPC');
}

const fullDisk: Shortage = {
  name: 'the disk is full',
  prepare: (data) => isPossible('mount', '-t', 'tmpfs', '-o', `size=${DISK}`, 'none', data),
  begin: fill,
  goOn: fill,
  leaveLittle: (data) =>
    truncateSync(join(data, 'filler'), statSync(join(data, 'filler')).size - LITTLE_BYTES),
  end: (data) => rmSync(join(data, 'filler')),
  cleanUp: (data) => void isPossible('umount', '-l', data),
};

const frozenFile: Shortage = {
  name: 'the file cannot grow',
  prepare: () => isPossible('prlimit', '--version'),
  begin: (data, pid) => {
    const { size } = statSync(join(data, 'berth.db-wal'));
    execFileSync('prlimit', ['--pid', String(pid), `--fsize=${size}:unlimited`]);
  },
  end: (_data, pid) => void execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited']),
  cleanUp: () => undefined,
};

it.for([fullDisk, frozenFile])(
  'while $name, writes are 503, reads go on, nothing is half-written; then all goes on by itself [full-disk-process]',
  async (shortage, { skip }) => {
    using folder = temporaryFolder();
    // A step whose lease could not be given back goes on when the lease has run out.
    const config = writeFastConfig(folder.path, { leaseS: 2 });
    const data = join(folder.path, 'data');
    const database = join(data, 'berth.db');
    mkdirSync(data);
    const isPermitted = shortage.prepare(data);
    try {
      if (!isPermitted) skip();
      // The platform has a disk of its own.
      symlinkSync(join(folder.path, 'platform'), `${database}.simulator`);
      await live();
    } finally {
      shortage.cleanUp(data);
    }

    async function live(): Promise<void> {
      await using berth = await startServing(['--config', config]);
      const pid = berth.child.pid ?? 0;
      const client = createClient(berth.baseUrl, berth.apiKey);
      const create = () => client.request('POST', '/instances', { body: instanceRequest() });
      const first = await create();
      const path = `/instances/${first.body['id']}`;
      await client.waitFor(path, 'ONLINE');
      const caught = await create();
      const readiness = async () => (await fetch(new URL('/readyz', berth.baseUrl))).status;
      const errors = (text: string) => berth.stderr.split('\n').filter((line) => line.includes(text));
      expect(await readiness()).toBe(200);
      shortage.begin(data, pid);

      // What room is left inside of what is taken already may serve a write or two.
      await until(
        async () => {
          shortage.goOn?.(data);
          return (await create()).status === 503;
        },
        () => 'there is still room',
      );
      const rows = () => readLedger(database).instances.length;
      const before = rows();
      for (const [method, at] of [
        ['POST', '/instances'],
        ['POST', `${path}/stop`],
        ['DELETE', path],
      ] as const) {
        const body = at === '/instances' ? { body: instanceRequest() } : {};
        expect(await client.request(method, at, body)).toMatchObject({
          status: 503,
          body: { error: { code: 'unavailable' } },
        });
      }
      expect(rows()).toBe(before);
      for (const at of [path, '/instances', '/configurations', '/availability', '/volumes/locations'])
        expect((await client.request('GET', at)).status).toBe(200);
      expect((await client.request('GET', path)).body).toMatchObject({ status: 'ONLINE' });

      expect(await readiness()).toBe(503);
      expect(errors('takes no writes')).toHaveLength(1);

      if (shortage.leaveLittle !== undefined) {
        shortage.leaveLittle(data);
        const begunAt = performance.now();
        await until(
          async () => {
            expect(await readiness()).toBe(503);
            return performance.now() - begunAt > TWO_TRIES_MS;
          },
          () => 'two tries',
        );
      }

      shortage.end(data, pid);
      await until(
        async () => (await create()).status === 201,
        () => 'it does not recover',
      );
      await until(
        async () => (await readiness()) === 200,
        () => 'it does not become ready',
      );
      expect(errors('takes no writes')).toHaveLength(1);
      expect((await client.request('POST', `${path}/stop`)).status).toBe(200);
      await client.waitFor(path, 'STOPPED');
      await client.waitFor(`/instances/${caught.body['id']}`, 'ONLINE');
      await until(
        async () => readLedger(database).work.length === 0,
        () => 'work is still open',
      );
      expect(faultsOf(readLedger(database))).toEqual([]);
      expect(await berth.end('SIGTERM')).toMatchObject({ code: 0 });
    }
  },
);
