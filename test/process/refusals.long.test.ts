import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  BerthProcess,
  type Ended,
  type ProcessOptions,
  runBerth,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { snapshotOf } from '../support/snapshot.ts';

// Every refusal there is stands in src/cli/refusals.test.ts; here is what takes a process, or another user.

const NOBODY = 65_534;
const root = temporaryFolder();
const good = join(root.path, 'good');
let count = 0;

beforeAll(async () => {
  chmodSync(root.path, 0o755);
  const berth = await startServing(['--config', writeFastConfig(good)]);
  expect(await berth.end()).toMatchObject({ code: 0 });
});
afterAll(() => root[Symbol.dispose]());

interface Place {
  folder: string;
  config: string;
  database: string;
}

/** A folder with a config and the database of an earlier start. */
function newPlace(): Place {
  const folder = join(root.path, `case-${++count}`);
  cpSync(good, folder, { recursive: true });
  return { folder, config: join(folder, 'berth.yaml'), database: join(folder, 'data', 'berth.db') };
}

function expectSentence({ code, signal, stdout, stderr }: Ended, sentence: RegExp): void {
  expect(stderr).toMatch(sentence);
  expect({ code, signal, stdout }).toEqual({ code: 1, signal: null, stdout: '' });
}

async function expectRefused(
  place: Place,
  args: readonly string[],
  sentence: RegExp,
  options: ProcessOptions = {},
): Promise<void> {
  const before = snapshotOf(place.folder);
  expectSentence(await runBerth(args, { cwd: place.folder, ...options }), sentence);
  expect(snapshotOf(place.folder)).toEqual(before);
}

const serve = ({ config }: Place, ...more: string[]): string[] => [
  ...['serve', '--port', '0', '--json', '--config', config],
  ...more,
];

it('a damaged database ends the process with one sentence and exit code 1 [damaged-database-refused]', async () => {
  const place = newPlace();
  writeFileSync(place.database, readFileSync(place.database).fill(0xa5, 8_192));
  await expectRefused(place, serve(place), /^berth: The database .* is damaged \(.+\): restore it .*\n$/);
});

it('a mistake on the command line does so too', async () => {
  expectSentence(await runBerth(['serve', '--bogus']), /^berth: unknown option '--bogus': see .*\n$/);
});

describe('a place where this user may not write is refused [place-not-writable]', () => {
  /** As root everything is allowed, so another user tries; where the checkout is closed to that one, none can. */
  const user = process.getuid?.() === 0 ? { uid: NOBODY } : {};
  const forbidden = /^berth: The database .* cannot be opened \(.+\): check that this user may .*\n$/;

  async function isMeaningful(): Promise<boolean> {
    return (await runBerth(['--help'], user)).code === 0;
  }

  it('with a database, without one, and when it may not even be seen', async ({ skip }) => {
    if (!(await isMeaningful())) skip();
    const place = newPlace();
    const at = (path: string) => serve(place, '--database', `sqlite:${join(place.folder, path)}`);
    chmodSync(join(place.folder, 'data'), 0o777);
    chmodSync(place.database, 0o444);
    await expectRefused(place, serve(place), forbidden, user);
    chmodSync(join(place.folder, 'data'), 0o555);
    await expectRefused(place, serve(place), forbidden, user);
    await expectRefused(place, at('new.db'), forbidden, user);
    await expectRefused(
      place,
      at('new/new.db'),
      /^berth: The folder .* cannot be created \(permission denied\): give/,
      user,
    );
    chmodSync(place.config, 0o000);
    await expectRefused(place, serve(place), /cannot be read: permission denied\n/, user);
    const closed = join(place.folder, 'data');
    chmodSync(closed, 0o000);
    const unseen = ['serve', '--port', '0', '--database', `sqlite:${place.database}`];
    expectSentence(await runBerth(unseen, user), forbidden);
    chmodSync(closed, 0o755);
  });
});

describe('a full disk is reported in one sentence', () => {
  it.for([
    [
      0,
      /^berth: The database .* cannot be opened \(.+\): check that .*, and that its disk has free space\.\n$/,
    ],
    [64 * 1024, /^berth: The database is unavailable \(.+\): fix this and try again\.\n$/],
  ] as const)('to a command that may write files of %i bytes', async ([bytes, sentence], { skip }) => {
    if (spawnSync('prlimit', ['--version']).status !== 0) skip();
    const place = newPlace();
    const db = new Database(place.database);
    growJournal(db, bytes);
    const through = ['prlimit', `--fsize=${bytes}`];
    const ended = await runBerth(['keys', 'create', '--config', place.config], { through });
    db.close();
    expectSentence(ended, sentence);
  });

  /** Fills the journal to `bytes`, so that a file limit of `bytes` refuses every write while `db` is open. */
  function growJournal(db: Database.Database, bytes: number): void {
    db.pragma('wal_autocheckpoint = 0');
    const journal = `${db.name}-wal`;
    while ((statSync(journal, { throwIfNoEntry: false })?.size ?? 0) < bytes)
      db.exec('UPDATE accounts SET name = name');
  }
});

describe('a second server', () => {
  let first: ServingProcess;
  let place: Place;

  beforeAll(async () => {
    place = newPlace();
    first = await startServing(['--config', place.config]);
  });
  afterAll(async () => {
    await first?.end('SIGKILL');
  });

  it('on the same database is refused, and the first goes on', async () => {
    const ended = await runBerth(serve(place));
    expectSentence(ended, /Another `berth serve` is running on the database .*: stop it first, or give/);
    expect((await fetch(new URL('/readyz', first.baseUrl))).status).toBe(200);
  });

  it('on the same port is refused, and changes nothing', async () => {
    const other = newPlace();
    const { port } = new URL(first.baseUrl);
    await expectRefused(other, serve(other, '--port', port), /is taken by another program: stop it/);
  });

  it('may follow a first one that was killed', async () => {
    await first.end('SIGKILL');
    first = await startServing(['--config', place.config]);
  });
});

it('a list whose reader has left, such as `head`, ends without a word', async () => {
  const { config } = newPlace();
  await using berth = new BerthProcess(['audit', 'ls', '--config', config]);
  berth.child.stdout?.destroy();
  expect(await berth.ended).toMatchObject({ code: 0, stderr: '' });
});
