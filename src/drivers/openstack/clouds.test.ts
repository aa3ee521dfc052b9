import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCloud } from './clouds.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-clouds-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const SECRET = 'the-secret-itself';
const credential = `
clouds:
  provider:
    auth:
      auth_url: https://keystone.example:5000
      application_credential_id: 7b4b
      application_credential_secret: ${SECRET}
    region_name: RegionOne
`;

function write(text: string, name = 'clouds.yaml'): string {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}
const read = (file: string | undefined, env = {}) =>
  readCloud({ cloud: 'provider', clouds_file: file, region: undefined }, env);

describe('clouds.yaml', () => {
  it('gives an application credential, its region and the address of Keystone v3', () => {
    const cloud = read(write(credential));
    expect(cloud).toMatchObject({
      authUrl: 'https://keystone.example:5000/v3',
      region: 'RegionOne',
      verify: true,
    });
    expect(cloud.auth).toEqual({
      identity: {
        methods: ['application_credential'],
        application_credential: { id: '7b4b', secret: SECRET },
      },
    });
    expect(cloud.isReadableByOthers).toBe(false);
  });

  it('gives a user with a project, and the secrets of secure.yaml beside it', () => {
    const auth = '{auth_url: "https://k/v3/", username: berth, project_name: shop, user_domain_name: D}';
    const file = write(`clouds: {provider: {auth: ${auth}}}`);
    write(`clouds: {provider: {auth: {password: ${SECRET}}}}`, 'secure.yaml');
    const { authUrl, auth: body } = read(file);
    expect(authUrl).toBe('https://k/v3');
    expect(body).toEqual({
      identity: {
        methods: ['password'],
        password: { user: { name: 'berth', domain: { name: 'D' }, password: SECRET } },
      },
      scope: { project: { name: 'shop', domain: { name: 'Default' } } },
    });
  });

  it('is found by OS_CLIENT_CONFIG_FILE, and says if others may read it', () => {
    const file = write(credential);
    chmodSync(file, 0o644);
    expect(read(undefined, { OS_CLIENT_CONFIG_FILE: file })).toMatchObject({
      file,
      isReadableByOthers: true,
    });
  });

  it.each([
    ['is missing', undefined, 'there is no'],
    ['is not YAML', `clouds: {a: "${SECRET}`, 'is not valid YAML'],
    ['has no clouds', SECRET, 'has no clouds'],
    ['lacks the cloud', `clouds: {other: {auth: {password: ${SECRET}}}}`, 'has no cloud provider'],
    ['lacks the address', `clouds: {provider: {auth: {password: ${SECRET}}}}`, 'auth.auth_url'],
    [
      'lacks a way in',
      `clouds: {provider: {auth: {auth_url: "https://k", password: ${SECRET}}}}`,
      'application_credential_id',
    ],
  ])('that %s is refused without a value of the file', (_what, text, expected) => {
    const file = text === undefined ? join(folder, 'none.yaml') : write(text);
    expect(() => read(file)).toThrow(expected);
    try {
      read(file);
    } catch (error) {
      expect(String(error)).not.toContain(SECRET);
    }
  });
});
