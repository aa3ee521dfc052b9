import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type CloudInit, cloudInitSchema } from '../../contract/cloud-init.ts';
import { renderCloudInit, renderUserData } from './render.ts';

const HEADER = '#cloud-config\n';
const machine = { hostname: 'gpu-1', sshKeys: ['ssh-ed25519 AAAA one', 'ssh-ed25519 BBBB two'] };
const hostKey = { privateKey: '-----BEGIN\nx\n-----END\n', publicKey: 'ssh-ed25519 CCCC' };

/** The document read as YAML 1.1, YAML 1.2 and JSON, as cloud-init, newer tools and a guest with `jq` read it. */
function readEach(document: string): unknown[] {
  expect(document.startsWith(HEADER)).toBe(true);
  const body = document.slice(HEADER.length);
  return [parse(document, { version: '1.1' }), parse(document, { version: '1.2' }), JSON.parse(body)];
}

/** The value as the tenant sent it. `defer` only sets when a file is written. */
function withoutDefer(value: unknown): unknown {
  return cloudInitSchema.parse(value);
}

/** Texts that have broken YAML or its readers. */
const snags = [
  ...['#cloud-config\n', '%YAML 1.1\n', '---\n', '...\n', '## template: jinja\n{{ x }}', '!!python/object:x'],
  ...['\u0085', '\u2028', '\u2029', '\u007f', '\u009f', '\ufeff', '\ufffe', '\uffff', '\ud7ff', '\ue000'],
  ...['\r\n', '\t', '\u0001', '\u001f', '"', "'", '\\', '\\u0041', '\u{1f600}', '\u{10ffff}', '\u{1fffe}'],
  ...[
    'yes',
    'null',
    '~',
    '0o17',
    '1_000',
    '12:30:45',
    '=',
    '<<',
    '&a',
    '*a',
    ': ',
    ' #',
    '- ',
    '{',
    '[',
    '>',
  ],
];

const text = fc
  .array(fc.oneof(fc.constantFrom(...snags), fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 6 })
  .map((parts) => parts.join(''));

const file = fc.record(
  {
    path: fc.array(text, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`),
    content: text,
    owner: fc.constantFrom('root', 'root:root', 'ubuntu:ubuntu', 'root:docker', '_apt'),
    permissions: fc.constantFrom('0644', '644', '0600', '4755', '07777', '000'),
  },
  { requiredKeys: ['path', 'content'] },
);

const cloudInit: fc.Arbitrary<CloudInit> = fc
  .record(
    {
      runcmd: fc.array(text, { maxLength: 4 }),
      packages: fc.array(fc.constantFrom('no', 'yes', 'on', '1.5', '1e3', 'g++', 'curl=8.0'), {
        maxLength: 4,
      }),
      package_update: fc.boolean(),
      package_upgrade: fc.boolean(),
      write_files: fc.array(file, { maxLength: 4 }),
    },
    { requiredKeys: [] },
  )
  .filter((value) => cloudInitSchema.safeParse(value).success) as fc.Arbitrary<CloudInit>;

describe('the tenant part', () => {
  it('reads the same as it was sent, whichever YAML reads it [cloud-init-round-trip]', () => {
    fc.assert(
      fc.property(cloudInit, (value) => {
        for (const read of readEach(renderUserData(value))) expect(withoutDefer(read)).toEqual(value);
      }),
      { numRuns: 300 },
    );
  });

  it.each(snags)('keeps %j, a value that YAML readers get wrong, in a file and in a command', (snag) => {
    const content = `${snag}a${snag}`;
    const value = { write_files: [{ path: '/a', content }], runcmd: [content] };
    for (const read of readEach(renderUserData(value))) expect(read).toEqual(value);
  });

  it('has only characters that YAML allows unescaped, and never starts a line with text of the tenant', () => {
    const printable = /^[ -\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]*$/u;
    fc.assert(
      fc.property(cloudInit, (value) => {
        const lines = renderUserData(value).split('\n');
        expect(lines.join('')).toMatch(printable);
        for (const line of lines.slice(1)) expect(line).toMatch(/^( |\{\}?$|\}$|$)/);
      }),
    );
  });

  it.each(readValid())('carries %s of the published cases', (_name, value) => {
    for (const read of readEach(renderUserData(value))) expect(withoutDefer(read)).toEqual(value);
  });

  it('keeps a mode in octal as text, which YAML would read as a number', () => {
    const [read] = readEach(
      renderUserData({ write_files: [{ path: '/a', content: '', permissions: '0644' }] }),
    );
    expect(read).toEqual({ write_files: [{ path: '/a', content: '', permissions: '0644' }] });
  });

  it('writes files of users other than root after the users exist', () => {
    const owners = ['root', 'root:root', 'root:docker', 'ubuntu', undefined];
    const files = owners.map((owner) => ({ path: '/a', content: '', owner }));
    const [read] = readEach(renderUserData({ write_files: files })) as [{ write_files: { defer?: true }[] }];
    expect(read.write_files.map(({ defer }) => defer)).toEqual([undefined, undefined, true, true, undefined]);
  });

  it('has only the five fields of the contract, whatever the input', () => {
    const hostile = {
      users: [],
      ssh_pwauth: true,
      vendor_data: { enabled: false },
      runcmd: ['id'],
    } as CloudInit;
    expect(readEach(renderUserData(hostile))[0]).toEqual({ runcmd: ['id'] });
    expect(readEach(renderUserData(undefined))[0]).toEqual({});
  });
});

describe('the provider part', () => {
  const provided = (loginUser: string, cloudInit?: CloudInit) =>
    readEach(renderCloudInit({ ...machine, cloudInit }, { loginUser, hostKey }).vendorData)[0];

  it('lets every key in as the login user, with sudo and without a password', () => {
    expect(provided('debian')).toMatchObject({
      hostname: 'gpu-1',
      users: [{ name: 'debian', ssh_authorized_keys: machine.sshKeys, lock_passwd: true }],
      disable_root: true,
      ssh_pwauth: false,
      ssh_deletekeys: true,
      ssh_keys: { ed25519_private: hostKey.privateKey, ed25519_public: hostKey.publicKey },
    });
  });

  it('lets root in where the image has no other user', () => {
    expect(provided('root')).toMatchObject({
      users: [{ name: 'root', ssh_authorized_keys: machine.sshKeys }],
      disable_root: false,
    });
  });

  it('has nothing in common with the tenant part, so that neither displaces the other [cloud-init-apart]', () => {
    const everything = cloudInitSchema.keyof().options;
    const names = Object.keys(provided('debian', { runcmd: ['id'] }) as object);
    expect(names.filter((name) => (everything as string[]).includes(name))).toEqual([]);
    expect(provided('debian', { runcmd: ['id'] })).toEqual(provided('debian'));
  });

  it('names no host key where none was made', () => {
    const { vendorData } = renderCloudInit({ ...machine, cloudInit: undefined }, { loginUser: 'debian' });
    expect(readEach(vendorData)[0]).not.toHaveProperty('ssh_keys');
  });
});

function readValid(): [string, CloudInit][] {
  const folder = join(import.meta.dirname, '../../../fixtures/cloud-init/valid');
  return readdirSync(folder).map((name) => [name, JSON.parse(readFileSync(join(folder, name), 'utf8'))]);
}
