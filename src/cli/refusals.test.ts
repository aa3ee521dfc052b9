import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { snapshotOf } from '../../test/support/snapshot.ts';
import { createSimulator } from '../drivers/simulator/platform/simulator.ts';
import { ensureAccess } from '../orchestrator/accounts/accounts.ts';
import { systemClock, systemRandom } from '../runtime/system.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-refusals-'));
const good = join(root, 'good');
let count = 0;
let folder: string;
let config: string;
let database: string;

/** The state after an earlier start. */
beforeAll(async () => {
  const path = join(good, 'data', 'berth.db');
  const store = openSqliteStore(path);
  await ensureAccess({ store, clock: systemClock, random: systemRandom }, undefined);
  await store.close();
  await (await createSimulator({ stateFile: `${path}.simulator`, capacity: [] }, systemClock)).close();
  writeFileSync(join(good, 'berth.yaml'), 'database: sqlite:data/berth.db\nserver: { port: 0 }\n');
});
afterAll(() => rmSync(root, { recursive: true }));

beforeEach(() => {
  folder = join(root, `case-${++count}`);
  cpSync(good, folder, { recursive: true });
  config = join(folder, 'berth.yaml');
  database = join(folder, 'data', 'berth.db');
  // As after an unclean stop: the file is checked.
  rmSync(`${database}.state`);
});
afterEach(() => vi.unstubAllEnvs());

/** Expects one sentence with the remedy on standard error, exit code 1, and unchanged files. */
async function expectRefused(args: readonly string[], sentence: RegExp): Promise<void> {
  const before = snapshotOf(folder);
  const { code, stdout, stderr } = await runMain(args);
  expect(stderr).toMatch(sentence);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^berth: /);
  expect(stderr).not.toMatch(/^\s+at |\bE[A-Z]{3,}\b:|SQLITE_|internal error|undefined|\[object/m);
  expect(snapshotOf(folder)).toEqual(before);
}

const serve = (...more: string[]): string[] => ['serve', '--json', '--config', config, ...more];

it('a clock that is before what the database has pruned is refused', async () => {
  const store = openSqliteStore(database);
  await store.transact((tx) => tx.marks.put('volumes_pruned_until', Date.UTC(2200, 0)));
  await store.close();
  const { code, stdout, stderr } = await runMain(serve());
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(
    /^berth: The clock shows \d{4}-.*, but .* created up to 2200-01-01T00:00:00\.000Z: correct the clock of this machine and start again\.\n$/,
  );
});

describe('a database that cannot be used is refused', () => {
  function flip(from: number, to: number): void {
    writeFileSync(database, readFileSync(database).fill(0xa5, from, to));
  }
  function inDatabase(file: string, change: (db: Database.Database) => unknown): void {
    const db = new Database(file);
    change(db);
    db.close();
  }
  const damaged =
    /^berth: The database .*berth\.db is damaged \(.+\): restore it from a backup; nothing was changed\.\n$/;

  it.each<[string, () => void, RegExp]>([
    ['random bytes', () => writeFileSync(database, 'x7!'.repeat(9_000)), damaged],
    ['a damaged header', () => flip(16, 32), damaged],
    ['a damaged page', () => flip(8_192, 8_292), damaged],
    ['a file cut short', () => writeFileSync(database, readFileSync(database).subarray(0, 30_000)), damaged],
    [
      'an empty file',
      () => writeFileSync(database, ''),
      /berth\.db is an empty file: restore it from a backup, or delete it/,
    ],
    [
      'the database of another program',
      () => {
        rmSync(database);
        inDatabase(database, (db) => db.exec('CREATE TABLE guests (name)'));
      },
      /berth\.db is a database of another program: give --database another file/,
    ],
    [
      'a newer version',
      () => inDatabase(database, (db) => db.pragma('user_version = 1000')),
      /is newer \(version 1000\) than this program \(version \d+\): run the Berth that wrote it/,
    ],
  ])('%s', async (_what, change, sentence) => {
    change();
    await expectRefused(serve(), sentence);
    await expectRefused(['keys', 'list', '--config', config], sentence);
    await expectRefused(['accounts', 'create', 'late', '--config', config], sentence);
    await expectRefused(['check-database', '--config', config], sentence);
  });

  it.each([true, false])(
    'with a damaged state of the simulator (and a database: %j)',
    async (hasDatabase) => {
      writeFileSync(`${database}.simulator`, readFileSync(`${database}.simulator`).fill(0xa5, 0, 64));
      if (!hasDatabase)
        for (const suffix of ['', '-wal', '-shm']) rmSync(`${database}${suffix}`, { force: true });
      await expectRefused(
        serve(),
        /^berth: The simulator cannot use its state .*\.simulator \(.+\): restore/,
      );
    },
  );

  it('with a simulator whose machines another process runs', async () => {
    const stateFile = `${database}.simulator`;
    const other = await createSimulator({ stateFile, capacity: [] }, systemClock);
    try {
      const remedy =
        /run one `berth simulator --state .*\.simulator` and set platform\.address in every berth\.yaml/;
      await expectRefused(serve(), remedy);
      await expectRefused(['simulator', '--json', '--port', '0', '--state', stateFile], remedy);
    } finally {
      await other.close();
    }
  });

  it('a folder', async () => {
    await expectRefused(
      serve('--database', `sqlite:${folder}`),
      /is a folder and not a database: give --database a file/,
    );
  });

  it('a path that goes through a file', async () => {
    await expectRefused(
      serve('--database', `sqlite:${database}/berth.db`),
      /The folder .* cannot be created \(a file is where a folder should be\): give --database a writable place/,
    );
  });

  it.each(['berth.db', 'mysql://localhost/berth', 'sqlite:', 'sqlite::memory:'])(
    'the address %s',
    async (address) => expectRefused(serve('--database', address), /^berth: --database .*sqlite:PATH/),
  );

  it('none at all, by a command that needs one', async () => {
    rmSync(join(folder, 'data'), { recursive: true });
    await expectRefused(
      ['keys', 'list', '--config', config],
      /There is no database .* yet: start `berth serve` once, or give --database/,
    );
  });
});

describe('an unavailable port or address is refused', () => {
  it('before a new database is made', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const address = `sqlite:${join(folder, 'new', 'berth.db')}`;
    await expectRefused(
      serve('--port', String(port), '--database', address),
      new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is taken by another program: stop it, or .* --port`),
    );
    server.close();
  });

  it.each(['abc', '-1', '70000', '80.5', '0x50', ''])('--port %j', async (port) =>
    expectRefused(serve(`--port=${port}`), /^berth: --port .*expected a whole number from 0 to 65535\n/),
  );

  it.each(['192.0.2.1', '300.1.2.3'])('--host %s', async (host) =>
    expectRefused(serve('--host', host), /The address .* is not one of this machine: .* --host/),
  );
});

describe('a simulator of its own that is not safe or not possible is refused', () => {
  const simulator = (...more: string[]): string[] => [
    ...['simulator', '--json', '--state', join(folder, 'data', 'new.db'), '--port', '0'],
    ...more,
  ];

  it.each<[string, string[], RegExp]>([
    [
      'no secret, and open to others',
      ['--host', '0.0.0.0'],
      /give the simulator .* the same BERTH_SIMULATOR_TOKEN/,
    ],
    ['a mistyped port', ['--port', '80x'], /--port 80x: give a whole number from 0 to 65535/],
    ['a mistyped host', ['--host', 'localhost.invalid', '--port', '0'], /BERTH_SIMULATOR_TOKEN/],
  ])('%s', async (_name, more, sentence) => expectRefused(simulator(...more), sentence));

  it.each([0x42727468, 0x42727462])('the state in a database or a backup of Berth (%i)', async (id) => {
    const db = new Database(database);
    db.pragma(`application_id = ${id}`);
    db.close();
    await expectRefused(
      simulator('--state', database),
      /^berth: .*berth\.db is not a state file of the simulator \(it is Berth's own .*\): give --state another file/,
    );
  });

  it('a secret that could be guessed', async () => {
    vi.stubEnv('BERTH_SIMULATOR_TOKEN', 'short');
    await expectRefused(simulator(), /^berth: BERTH_SIMULATOR_TOKEN must be 16 to 512 characters/);
    await expectRefused(serve(), /^berth: BERTH_SIMULATOR_TOKEN must be 16 to 512 characters/);
  });

  it('an invalid address', async () => {
    writeFileSync(config, 'platform: { driver: simulator, address: localhost:8090 }\n');
    await expectRefused(serve(), /platform\.address.*expected an address such as http:\/\/127\.0\.0\.1:8090/);
  });
});

describe('a configuration that cannot be used is refused', () => {
  it('with every finding', async () => {
    writeFileSync(config, 'log_level: loud\nplatform: { address: 7, colour: red }\nport: 1\n');
    const lines = [
      `^berth: ${config}:1:12 log_level: expected .*`,
      `${config}:2:\\d+ platform\\.address: expected .*`,
      `${config}:2:\\d+ platform\\.colour: unknown key; .*`,
      `${config}:3:1 port: unknown key; .*`,
      'Correct these 4, then run `berth check-config` again\\.\\n$',
    ];
    await expectRefused(serve(), new RegExp(lines.join('\\n')));
  });

  it.each<[string, () => string[], RegExp]>([
    ['a missing one', () => ['--config', 'nowhere.yaml'], /nowhere\.yaml: there is no such file\n/],
    ['a folder', () => ['--config', folder], /expected a YAML file, got a directory\n/],
    ['one that is no YAML', () => write('server: [\n'), /berth\.yaml:\d+:\d+: .+\n/],
    ['a missing catalog', () => write('catalog: none.yaml\n'), /none\.yaml: there is no such file\n/],
    [
      'a catalog with errors',
      () => {
        writeFileSync(join(folder, 'catalog.yaml'), 'regions: {}\noffers:\n  - id: 7\n');
        return write('catalog: catalog.yaml\n');
      },
      /catalog\.yaml:3:\d+ offers\[0\]\.id: .+\n/,
    ],
  ])('%s', async (_what, prepare, sentence) => {
    const more = prepare();
    await expectRefused(serve(...more), sentence);
  });

  function write(text: string): string[] {
    writeFileSync(config, text);
    return [];
  }

  it('in BERTH_API_KEY, before a new database is made', async () => {
    vi.stubEnv('BERTH_API_KEY', 'short');
    await expectRefused(
      serve('--database', `sqlite:${join(folder, 'new', 'berth.db')}`),
      /^berth: BERTH_API_KEY must be 16 to 512 characters .*openssl rand -hex 32/,
    );
  });
});

describe('TLS files that cannot be used are refused', () => {
  const both = (): string[] => ['--tls-cert', join(folder, 'a.crt'), '--tls-key', join(folder, 'a.key')];

  it('a certificate alone', async () =>
    expectRefused(serve('--tls-cert', 'a.crt'), /--tls-cert server\.tls\.key: needs --tls-key too/));

  it('missing ones', async () =>
    expectRefused(
      serve(...both()),
      /The TLS certificate .*a\.crt cannot be read \(there is no such file\): check --tls-cert/,
    ));

  it('folders', async () => {
    mkdirSync(join(folder, 'a.crt'));
    await expectRefused(
      serve(...both()),
      /The TLS certificate .*a\.crt cannot be read \(it is a folder\): check --tls-cert/,
    );
  });

  it('others than PEM', async () => {
    for (const name of ['a.crt', 'a.key']) writeFileSync(join(folder, name), 'nothing\n');
    await expectRefused(
      serve(...both()),
      /a\.crt and .*a\.key are not a TLS certificate chain and its key \(.+\): give PEM files/,
    );
  });
});

describe('a mistake on the command line is refused', () => {
  it.each([
    ['serv', /^berth: unknown command 'serv' \(Did you mean serve\?\): see `berth --help`\.\n$/],
    ['serve --bogus', /^berth: unknown option '--bogus': see `berth serve --help`\.\n$/],
    ['serve now', /^berth: too many arguments for 'serve'.*: see `berth serve --help`\.\n$/],
    ['serve --port', /^berth: option '--port <number>' argument missing: see `berth serve --help`\.\n$/],
    ['keys make', /^berth: unknown command 'make': see `berth keys --help`\.\n$/],
    [
      'orphans adpt berth-1',
      /^berth: unknown command 'adpt' \(Did you mean adopt\?\): see `berth orphans --help`\.\n$/,
    ],
    ['instnces ls', /^berth: unknown command 'instnces' \(Did you mean instances\?\)/],
    ['instances ls --regoin x', /^berth: unknown option '--regoin' \(Did you mean --region\?\)/],
    ['instances ls --status STOPED', /--status STOPED: give one of .* \(Did you mean STOPPED\?\)/],
    ['orphans list x', /^berth: too many arguments for 'ls'.*: see `berth orphans ls --help`\.\n$/],
    ['marketplace stat', /^berth: unknown command 'stat': see `berth marketplace --help`\.\n$/],
    ['keys revoke', /^berth: missing required argument 'id': see `berth keys revoke --help`\.\n$/],
  ])('%s', async (line, sentence) => expectRefused(line.split(' '), sentence));
});

describe('--help', () => {
  it.each([
    ['--help', /^Usage: berth \[options\] \[command\]\n/],
    ['serve --help', /^Usage: berth serve \[options\]\n[\s\S]*--port <number>[\s\S]*default 8080/],
    ['keys --help', /^Usage: berth keys [\s\S]*create[\s\S]*list[\s\S]*revoke/],
    ['keys create --help', /^Usage: berth keys create\|add [\s\S]*--account <name>[\s\S]*--expires <when>/],
    ['keys revoke --help', /^Usage: berth keys revoke \[options\] <id>\n/],
    ['accounts set-password --help', /^Usage: berth accounts set-password [\s\S]*standard\s+input/],
    ['simulator --help', /^Usage: berth simulator [\s\S]*units of\s+the\s+catalog[\s\S]*--state <file>/],
    ['check-config --help', /^Usage: berth check-config \[options\]\n[\s\S]*--config <file>/],
    ['help backup', /^Usage: berth backup \[options\] <file>\n/],
    ['help conformance', /^Usage: berth conformance \[options\]/],
    ['help conformance doctor', /^Usage: berth conformance doctor \[options\]/],
  ])('berth %s', async (line, text) => {
    const { code, stdout, stderr } = await runMain(line.split(' '));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(text);
    for (const row of stdout.split('\n')) expect(row.length).toBeLessThanOrEqual(80);
  });
});

describe('--version', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

  it.each(['--version', '-V', 'conformance --version'])(
    'berth %s prints the version of the package',
    async (line) => {
      expect(await runMain(line.split(' '))).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    },
  );
});
