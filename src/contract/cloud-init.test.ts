import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cloudInitSchema } from './cloud-init.ts';

const fixtures = join(import.meta.dirname, '../../fixtures/cloud-init');
const valid = readFixtures('valid');
const invalid = readFixtures('invalid');

const aFile = { path: '/etc/motd', content: 'hello\n' };
const file = (fields: object) => ({ write_files: [{ ...aFile, ...fields }] });

/** The path of the expected issue for each invalid file, by the prefix of its name. The first match counts. */
const faultPaths: [prefix: string, path: string][] = [
  ['not-an-object', ''],
  ['runcmd-of', 'runcmd.0'],
  ['runcmd-empty', 'runcmd.1'],
  ['runcmd-nul.', 'runcmd.0'],
  ['runcmd-lone', 'runcmd.0'],
  ['runcmd-', 'runcmd'],
  ['packages-of', 'packages.0'],
  ['packages-', 'packages'],
  ['package-update', 'package_update'],
  ['package-upgrade', 'package_upgrade'],
  ['package-like-an-option', 'packages.1'],
  ['package-', 'packages.0'],
  ['write-files-object', 'write_files'],
  ['write-files-of', 'write_files.0'],
  ['path-', 'write_files.0.path'],
  ['content-', 'write_files.0.content'],
  ['owner-', 'write_files.0.owner'],
  ['permissions-', 'write_files.0.permissions'],
];

/** For each limit, a value exactly at the limit and one that exceeds it by one. */
const limits: [name: string, most: unknown, tooMuch: unknown][] = [
  [
    'bytes of content',
    file({ content: 'ü'.repeat(128 * 1024) }),
    file({ content: `${'ü'.repeat(128 * 1024)}a` }),
  ],
  [
    'bytes in a part of a path',
    file({ path: `/${'ü'.repeat(127)}a` }),
    file({ path: `/${'ü'.repeat(128)}` }),
  ],
  ['bytes of a path', file({ path: '/aaaa'.repeat(819) }), file({ path: `${'/aaaa'.repeat(819)}a` })],
  ['files', { write_files: Array(128).fill(aFile) }, { write_files: Array(129).fill(aFile) }],
  ['packages', { packages: Array(256).fill('a') }, { packages: Array(257).fill('a') }],
  ['characters of a package', { packages: ['a'.repeat(255)] }, { packages: ['a'.repeat(256)] }],
  ['commands', { runcmd: Array(256).fill('a') }, { runcmd: Array(257).fill('a') }],
  ['characters of a command', { runcmd: ['a'.repeat(16_384)] }, { runcmd: ['a'.repeat(16_385)] }],
  ['characters of a user', file({ owner: 'a'.repeat(32) }), file({ owner: 'a'.repeat(33) })],
];

describe('cloud_init', () => {
  it.each([...valid])('accepts %s and keeps every character', (_name, value) => {
    expect(cloudInitSchema.parse(value)).toEqual(value);
  });

  it.each([...invalid])('refuses %s and names the path of the fault', (name, value) => {
    const [, path] = faultPaths.find(([prefix]) => name.startsWith(prefix)) ?? [];
    const issues = cloudInitSchema.safeParse(value).error?.issues ?? [];
    expect([...new Set(issues.map((issue) => issue.path.join('.')))]).toEqual([path]);
  });

  it.each(limits)('holds the limit on %s', (_name, most, tooMuch) => {
    expect(cloudInitSchema.safeParse(most).success).toBe(true);
    expect(cloudInitSchema.safeParse(tooMuch).success).toBe(false);
  });

  it('ignores fields that the contract does not name', () => {
    const value = { users: [{ name: 'mallory' }], write_files: [{ ...aFile, append: true }] };
    expect(cloudInitSchema.parse(value)).toEqual({ write_files: [aFile] });
  });
});

describe('any cloud_init', () => {
  it('writes only to absolute paths with one interpretation [cloud-init-safe-paths]', () => {
    const part = fc.oneof(
      fc.constantFrom('', '.', '..', 'etc', '...', '\0', '~'),
      fc.string({ maxLength: 5 }),
    );
    const paths = fc.tuple(fc.constantFrom('', '/', '//'), fc.array(part, { maxLength: 6 }));
    fc.assert(
      fc.property(paths, ([front, parts]) => {
        const path = front + parts.join('/');
        if (!cloudInitSchema.safeParse(file({ path })).success) return;
        const [first, ...rest] = path.split('/');
        expect(first).toBe('');
        for (const name of rest) expect(['', '.', '..']).not.toContain(name);
        expect(path).not.toContain('\0');
      }),
      { numRuns: 2000 },
    );
  });

  it('installs only names that package tools cannot read as an option, a removal or a file', () => {
    const names = fc.oneof(fc.stringMatching(/^[-a-z0-9+._:~=/ ]{1,12}$/), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(names, (name) => {
        if (!cloudInitSchema.safeParse({ packages: [name] }).success) return;
        expect(name).toMatch(/^[A-Za-z0-9][^\s/]*$/);
        expect(name.endsWith('-')).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it('is accepted or refused, and never throws [cloud-init-never-throws]', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => void cloudInitSchema.safeParse(value)));
  });
});

function readFixtures(folder: 'valid' | 'invalid'): Map<string, unknown> {
  const names = readdirSync(join(fixtures, folder));
  if (names.length === 0) throw new Error(`no files in ${folder}`);
  return new Map(names.map((name) => [name, JSON.parse(readFileSync(join(fixtures, folder, name), 'utf8'))]));
}
