import { describe, expect, it } from 'vitest';
import { sameBerth, sameMarketplace } from './invocation.ts';

const checkout = { script: '/home/me/berth/src/main.ts', cwd: '/home/me/berth' };

describe('the command that works where the server was started', () => {
  it.each([
    [
      'npm start',
      { ...checkout, env: { npm_command: 'start', npm_lifecycle_event: 'start' } },
      {},
      'npm run -s berth -- keys create',
    ],
    [
      'npm run berth -- serve',
      { ...checkout, env: { npm_command: 'run', npm_lifecycle_event: 'berth' } },
      {},
      'npm run -s berth -- keys create',
    ],
    ['node src/main.ts serve', { ...checkout, env: {} }, {}, 'node src/main.ts keys create'],
    [
      'the installed program',
      { env: {}, script: '/usr/lib/node_modules/berth/dist/main.js', cwd: '/' },
      {},
      'berth keys create',
    ],
    [
      'npx berth serve',
      { env: { npm_command: 'exec' }, script: '/tmp/x/berth', cwd: '/' },
      {},
      'npx berth keys create',
    ],
    [
      'a script of a package that has Berth installed',
      { env: { npm_command: 'start' }, script: '/srv/shop/node_modules/.bin/berth', cwd: '/srv/shop' },
      {},
      'npx berth keys create',
    ],
    [
      'the program of a package, called from elsewhere',
      { env: {}, script: '/opt/berth/node_modules/.bin/berth', cwd: '/opt/berth-two' },
      {},
      '/opt/berth/node_modules/.bin/berth keys create',
    ],
    [
      '--config',
      { env: {}, script: '/usr/bin/berth', cwd: '/' },
      { config: '/etc/berth/berth.yaml' },
      'berth keys create --config /etc/berth/berth.yaml',
    ],
    [
      'BERTH_CONFIG, and names with spaces and quotes',
      { env: { BERTH_CONFIG: 'a b.yaml' }, script: '/usr/bin/berth', cwd: '/' },
      { database: "sqlite:it's here.db" },
      String.raw`berth keys create --config 'a b.yaml' --database 'sqlite:it'\''s here.db'`,
    ],
    [
      'a database with a password, as a flag',
      { env: {}, script: '/usr/bin/berth', cwd: '/' },
      { database: 'postgres://u:secret@h/d' },
      "berth keys create --database 'postgres://u:…@h/d'",
    ],
    [
      'a database with a password, in the environment',
      { env: { BERTH_DATABASE: 'postgres://u:secret@h/d' }, script: '/usr/bin/berth', cwd: '/' },
      {},
      'berth keys create --database "$BERTH_DATABASE"',
    ],
  ])('%s', (_case, started, flags, expected) => {
    expect(sameBerth('keys create', flags, started)).toBe(expected);
  });
});

it('names the file and the variable of a marketplace, not those of an orchestrator', () => {
  const env = { BERTH_CONFIG: 'berth.yaml', BERTH_MARKETPLACE_DATABASE: 'postgres://u:secret@h/d' };
  const started = { ...checkout, env: { ...env, npm_command: 'run', npm_lifecycle_event: 'berth' } };
  expect(sameMarketplace('keys create me', {}, started)).toBe(
    'npm run -s berth -- marketplace keys create me --database "$BERTH_MARKETPLACE_DATABASE"',
  );
  expect(sameMarketplace('keys create me', { config: 'marketplace.yaml' }, { ...started, env: {} })).toBe(
    'node src/main.ts marketplace keys create me --config marketplace.yaml',
  );
});
