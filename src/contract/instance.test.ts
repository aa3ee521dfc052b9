import { describe, expect, it } from 'vitest';
import { createInstanceRequestSchema, MAX_NAME_LENGTH, MAX_SSH_KEYS, nameSchema } from './instance.ts';

const request = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt', ssh_keys: ['ssh-ed25519 AAAA'] };

describe('a name', () => {
  it.each([
    'a',
    'my machine',
    'Zoë ☃ 東京',
    '😀',
    '<b>',
    '../../etc',
    '"; $(id)',
    'a'.repeat(MAX_NAME_LENGTH),
  ])('may be %j', (name) => {
    expect(nameSchema.parse(name)).toBe(name);
  });

  it.each([
    ['empty', ''],
    ['too long', 'a'.repeat(MAX_NAME_LENGTH + 1)],
    ['with NUL', 'a\0b'],
    ['with a line feed', 'a\nb'],
    ['with a carriage return', 'a\rb'],
    ['with a tab', 'a\tb'],
    ['with an escape sequence', '\u001b[2J'],
    ['with DEL', 'a\u007f'],
    ['with U+2028', 'a\u2028b'],
    ['with a lone surrogate', 'a\ud800'],
    ['a number', 7],
    ['null', null],
    ['a list', ['a']],
  ])('may not be %s', (_what, name) => {
    expect(nameSchema.safeParse(name).success).toBe(false);
  });
});

describe('a request to create an instance', () => {
  it('needs no more than an offer, a region and a key', () => {
    expect(createInstanceRequestSchema.parse(request)).toEqual(request);
  });

  it('ignores unknown fields', () => {
    expect(createInstanceRequestSchema.parse({ ...request, tags: ['a'], __v: 1 })).toEqual(request);
  });

  it.each([
    ['configuration_id', undefined, 'configuration_id'],
    ['configuration_id', '', 'configuration_id'],
    ['region', undefined, 'region'],
    ['region', 'a'.repeat(64), 'region'],
    ['ssh_keys', undefined, 'ssh_keys'],
    ['ssh_keys', [], 'ssh_keys'],
    ['ssh_keys', 'ssh-ed25519 AAAA', 'ssh_keys'],
    ['ssh_keys', [null], 'ssh_keys.0'],
    ['ssh_keys', Array(MAX_SSH_KEYS + 1).fill('a'), 'ssh_keys'],
    ['name', 7, 'name'],
    ['name', null, 'name'],
    ['operating_system_image', '', 'operating_system_image'],
    ['root_disk_size_gb', 0, 'root_disk_size_gb'],
    ['root_disk_size_gb', -1, 'root_disk_size_gb'],
    ['root_disk_size_gb', Number.NaN, 'root_disk_size_gb'],
    ['root_disk_size_gb', Number.POSITIVE_INFINITY, 'root_disk_size_gb'],
    ['root_disk_size_gb', '100', 'root_disk_size_gb'],
    ['volume_ids', 'v-1', 'volume_ids'],
    ['volume_ids', [''], 'volume_ids.0'],
    ['cloud_init', '#cloud-config', 'cloud_init'],
    ['cloud_init', { write_files: [{ path: 'etc' }] }, 'cloud_init.write_files.0.path'],
  ])('is refused with %s = %j, at %s', (field, value, path) => {
    const issues = createInstanceRequestSchema.safeParse({ ...request, [field]: value }).error?.issues ?? [];
    expect(issues.map((issue) => issue.path.join('.'))).toContain(path);
  });

  it.each([[[]], [null], ['a'], [1]])('is refused when it is %j', (value) => {
    expect(createInstanceRequestSchema.safeParse(value).success).toBe(false);
  });
});
