import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError, toLine } from './findings.ts';
import { bundledCatalogFile, type LoadOptions, loadConfig } from './load.ts';
import { sqlitePath } from './server-schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-load-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, 'berth.yaml');
writeFileSync(
  file,
  [
    'server:',
    '  host: 10.0.0.1',
    '  port: 1000',
    '  tls: { cert: a.pem, key: /b.pem }',
    'database: sqlite:data/b.db',
    'catalog: c.yaml',
    'log_level: warn',
    '',
  ].join('\n'),
);

/** Loads and returns the lines of the error. */
function errorLines(options: Partial<LoadOptions>): string[] {
  try {
    loadConfig({ flags: {}, env: {}, ...options });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message.split('\n').slice(0, -1)).toEqual(error.findings.map(toLine));
    return error.message.split('\n');
  }
}

describe('the configuration', () => {
  it('defaults to the simulator with the bundled catalog', () => {
    const { config, sources } = loadConfig({ flags: {}, env: {} });
    expect(config).toMatchObject({
      server: { host: '127.0.0.1', port: 8080 },
      database: `sqlite:${resolve('.berth/berth.db')}`,
      catalog: bundledCatalogFile(),
      platform: { driver: 'simulator' },
    });
    expect(new Set(sources.values())).toEqual(new Set(['default']));
  });

  it('takes the files that a driver reads as relative to the file, on one platform and on several [config-driver-files]', () => {
    const options =
      'driver: incus, client_certificate: a.crt, client_key: /k/a.key, server_certificate: keys/s.crt';
    const several = join(folder, 'several.yaml');
    const one = join(folder, 'one.yaml');
    writeFileSync(one, `platform: { ${options} }\n`);
    writeFileSync(several, `platforms: { east: { ${options} } }\n`);
    const expected = {
      client_certificate: join(folder, 'a.crt'),
      client_key: '/k/a.key',
      server_certificate: join(folder, 'keys/s.crt'),
    };
    expect(loadConfig({ file: one, flags: {}, env: {} }).config.platform).toMatchObject(expected);
    expect(loadConfig({ file: several, flags: {}, env: {} }).config.platforms?.['east']).toMatchObject(
      expected,
    );
  });

  it.each([
    ['a flag over the environment', { host: 'flag' }, { BERTH_HOST: 'env' }, 'flag', 'flag'],
    ['the environment over the file', {}, { BERTH_HOST: 'env' }, 'env', 'environment'],
    ['the file over the default', {}, { BERTH_HOST: '' }, '10.0.0.1', 'file'],
  ])('takes %s', (_what, flags, env, host, source) => {
    const { config, sources } = loadConfig({ file, flags, env });
    expect(config.server.host).toBe(host);
    expect(sources.get('server.host')).toBe(source);
  });

  it.each([
    ['BERTH_HOST', 'a', 'host', (c: Loaded) => c.server.host, 'a'],
    ['BERTH_PORT', '0', 'port', (c: Loaded) => c.server.port, 0],
    ['BERTH_DATABASE', 'sqlite:/x/y.db', 'database', (c: Loaded) => sqlitePath(c.database), '/x/y.db'],
    ['BERTH_TLS_CERT', '/t.pem', 'tlsCert', (c: Loaded) => c.server.tls?.cert, '/t.pem'],
    ['BERTH_TLS_KEY', '/t.pem', 'tlsKey', (c: Loaded) => c.server.tls?.key, '/t.pem'],
    ['BERTH_LOG_LEVEL', 'debug', 'logLevel', (c: Loaded) => c.log_level, 'debug'],
  ])('reads %s, and its flag', (variable, text, flag, read, value) => {
    expect(read(loadConfig({ file, flags: {}, env: { [variable]: text } }).config)).toBe(value);
    expect(read(loadConfig({ file, flags: { [flag]: text }, env: {} }).config)).toBe(value);
  });

  it('takes the file from BERTH_CONFIG, unless one is given', () => {
    expect(loadConfig({ flags: {}, env: { BERTH_CONFIG: file } }).config.server.port).toBe(1000);
    expect(errorLines({ file: join(folder, 'none.yaml'), env: { BERTH_CONFIG: file } })[0]).toBe(
      `${folder}/none.yaml: there is no such file`,
    );
  });

  it('resolves paths in the file against the file, all others against the working directory', () => {
    const { server, database, catalog } = loadConfig({ file, flags: {}, env: {} }).config;
    expect({ tls: server.tls, database, catalog }).toEqual({
      tls: { cert: join(folder, 'a.pem'), key: '/b.pem' },
      database: `sqlite:${join(folder, 'data/b.db')}`,
      catalog: join(folder, 'c.yaml'),
    });
    const flagged = loadConfig({
      file,
      flags: { tlsCert: 'a.pem' },
      env: { BERTH_DATABASE: 'sqlite:b.db' },
    }).config;
    expect(flagged.server.tls).toEqual({ cert: resolve('a.pem'), key: '/b.pem' });
    expect(flagged.database).toBe(`sqlite:${resolve('b.db')}`);
  });

  it.each([
    'postgres://berth:p%40ss@db/berth?sslmode=verify-full',
    'postgresql:///berth?host=/run/postgresql',
  ])('does not change the address %s, whatever its source', (address) => {
    expect(loadConfig({ file, flags: { database: address }, env: {} }).config.database).toBe(address);
    const named = join(folder, 'postgres.yaml');
    writeFileSync(named, `database: ${address}\n`);
    expect(loadConfig({ file: named, flags: {}, env: {} }).config.database).toBe(address);
  });

  it('backs up a SQLite file to a folder beside the configuration, and refuses to for PostgreSQL', () => {
    const scheduled = join(folder, 'backups.yaml');
    writeFileSync(scheduled, 'backups: { folder: copies }\n');
    const { config } = loadConfig({ file: scheduled, flags: {}, env: {} });
    expect(config.backups).toEqual({ folder: join(folder, 'copies'), every_hours: 24, keep: 14 });
    expect(errorLines({ file: scheduled, flags: { database: 'postgres://berth@db/berth' } })[0]).toMatch(
      /backups\.yaml:1:\d+ backups: expected no backups here, since the database is PostgreSQL/,
    );
  });

  it.each<[string, Partial<LoadOptions>, string]>([
    [
      'a port that is no number',
      { flags: { port: '80a' } },
      '--port server.port: expected a whole number from 0 to 65535',
    ],
    [
      'a port out of range',
      { env: { BERTH_PORT: '65536' } },
      'BERTH_PORT server.port: expected a whole number from 0 to 65535',
    ],
    [
      'an unknown log level',
      { flags: { logLevel: 'loud' } },
      '--log-level log_level: expected one of "trace", "debug", "info", "warn", "error", "fatal", "silent"',
    ],
    [
      'a certificate without a key',
      { flags: { tlsCert: 'a' } },
      '--tls-cert server.tls.key: needs --tls-key too',
    ],
    [
      'an admin listener beyond loopback without TLS',
      { env: { BERTH_ADMIN_HOST: '0.0.0.0' } },
      'BERTH_ADMIN_HOST server.admin.host: expected TLS, since other machines can reach this address and operators send their keys to it: set server.admin.tls, or listen on 127.0.0.1 and forward the port',
    ],
    [
      'a key without a certificate',
      { env: { BERTH_TLS_KEY: 'a' } },
      'BERTH_TLS_KEY server.tls.cert: needs --tls-cert too',
    ],
    [
      'a PostgreSQL address that is none',
      { env: { BERTH_DATABASE: 'postgres://user:pass word@:x/berth' } },
      'BERTH_DATABASE database: expected sqlite:PATH, where PATH is a file, such as sqlite:./.berth/berth.db, or postgres://USER:PASSWORD@HOST/NAME',
    ],
    [
      'a database in memory',
      { flags: { database: 'sqlite::memory:' } },
      '--database database: expected sqlite:PATH, where PATH is a file, such as sqlite:./.berth/berth.db, or postgres://USER:PASSWORD@HOST/NAME',
    ],
    [
      'a database of no kind',
      { flags: { database: 'berth.db' } },
      '--database database: expected sqlite:PATH, where PATH is a file, such as sqlite:./.berth/berth.db, or postgres://USER:PASSWORD@HOST/NAME',
    ],
  ])('names the flag or the variable of %s, and says what to do', (_what, options, line) => {
    expect(errorLines(options)).toEqual([line, 'Correct it and try again.']);
  });

  const encode =
    '--database database: expected postgres://USER:PASSWORD@HOST/NAME with the special characters of the password percent-encoded, such as %40 for @, %23 for # and %2F for /';
  const name =
    '--database database: expected the name of a database at the end, as in postgres://USER:PASSWORD@HOST/NAME';
  it.each([
    ['postgres://berth:p@ss/w#rd@host/db', encode],
    ['postgres://berth:p@ss@host/db', encode],
    ['postgres://berth:p@ss/word@host/db', encode],
    ['postgres://berth:5/word@host/db', encode],
    ['postgres://berth:5?word@host/db', encode],
    ['postgres://berth:word@host/db#', encode],
    ['postgres://berth:word@host', name],
    ['postgres://berth:word@host/', name],
    ['postgresql:///?host=/run/postgresql', name],
  ])('refuses %s without repeating it', (address, line) => {
    expect(errorLines({ flags: { database: address } })).toEqual([line, 'Correct it and try again.']);
  });

  it('reports all problems at once', () => {
    const bad = join(folder, 'bad.yaml');
    writeFileSync(bad, 'server: { prot: 1 }\nquotas: { volumes: -1 }\nlog_level: loud\n');
    expect(errorLines({ file: bad, flags: { port: 'x' } })).toEqual([
      '--port server.port: expected a whole number from 0 to 65535',
      `${bad}:1:11 server.prot: unknown key; remove it or correct its spelling`,
      `${bad}:2:20 quotas.volumes: expected at least 0`,
      expect.stringMatching(/bad\.yaml:3:12 log_level: expected one of /),
      'Correct these 4, then run `berth check-config` again.',
    ]);
  });
});

type Loaded = ReturnType<typeof loadConfig>['config'];
