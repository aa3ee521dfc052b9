import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOffers, locations } from './catalog.ts';
import { defaultOptions } from './model.ts';
import { keys, smallRequest } from './reference.fixture.ts';
import { findKeyProblem } from './ssh-key-line.ts';
import { type RequestContext, validateCreate, validateVolume } from './validate.ts';

const context: RequestContext = {
  offers: createOffers(defaultOptions),
  locations,
  volumes: new Map(),
  instanceRegions: new Map([['i-1', 'us-east']]),
};

const fixtures = join(import.meta.dirname, '../../../fixtures');
const filesIn = (folder: string): [string, string][] =>
  readdirSync(join(fixtures, folder)).map((name) => [
    name,
    readFileSync(join(fixtures, folder, name), 'utf8'),
  ]);

describe('a create', () => {
  it.each([
    {},
    {
      unknown_field: 1,
      name: 'a',
      operating_system_image: 'debian-13',
      root_disk_size_gb: 80,
      volume_ids: [],
    },
    { cloud_init: { runcmd: ['true'], packages: ['git'], package_update: true, write_files: [] } },
  ])('is accepted with %j', (fields) => {
    expect(validateCreate({ ...smallRequest, ...fields }, context)).toEqual([]);
  });

  it.each([
    ['configuration_id', 'nothing'],
    ['configuration_id', 7],
    ['configuration_id', undefined],
    ['region', 'ap-south'],
    ['region', null],
    ['ssh_keys', []],
    ['ssh_keys', keys.own.public],
    ['ssh_keys[1]', [keys.own.public, 'ssh-ed25519 AAAA']],
    ['ssh_keys[0]', [keys.own.private]],
    ['name', 7],
    ['name', null],
    ['operating_system_image', 'windows-3.11'],
    ['root_disk_size_gb', -1],
    ['root_disk_size_gb', '80'],
    ['cloud_init', 'runcmd'],
    ['cloud_init.runcmd', { runcmd: 'true' }],
    ['cloud_init.package_update', { package_update: 'yes' }],
    ['cloud_init.write_files[0].content', { write_files: [{ path: '/a' }] }],
    ['volume_ids', 'v-1'],
    ['volume_ids[0]', ['v-unknown']],
  ])('is refused at %s for %j', (path, value) => {
    const field = /^\w+/.exec(path)?.[0] ?? '';
    const asked = JSON.parse(JSON.stringify({ ...smallRequest, [field]: value }));
    expect(validateCreate(asked, context).map((issue) => issue.path)).toEqual([path]);
  });

  it('is refused for cloud_init where the offer has none', () => {
    const asked = { ...smallRequest, configuration_id: 'cpu-plain', cloud_init: {} };
    expect(validateCreate(asked, context)).toMatchObject([{ path: 'cloud_init' }]);
  });

  it.each(filesIn('ssh-keys/valid'))('takes the key %s', (_name, line) => {
    expect(findKeyProblem(line)).toBeUndefined();
  });

  it.each(filesIn('ssh-keys/invalid'))('refuses the key %s', (_name, line) => {
    expect(findKeyProblem(line)).toEqual(expect.any(String));
  });

  it.each(filesIn('cloud-init/valid'))('takes the cloud_init %s', (_name, text) => {
    expect(validateCreate({ ...smallRequest, cloud_init: JSON.parse(text) }, context)).toEqual([]);
  });

  it.each(filesIn('cloud-init/invalid'))('refuses the cloud_init %s', (_name, text) => {
    expect(validateCreate({ ...smallRequest, cloud_init: JSON.parse(text) }, context)).not.toEqual([]);
  });
});

describe('the create of a volume', () => {
  const volume = { name: 'data', size_gb: 10, region: 'us-east' };

  it('is accepted with a type of its location and instances there', () => {
    expect(validateVolume({ ...volume, type: 'nvme', instance_ids: ['i-1'] }, context)).toEqual([]);
  });

  it.each([
    ['name', undefined],
    ['name', 7],
    ['size_gb', 0],
    ['size_gb', '10'],
    ['region', 'ap-south'],
    ['type', 'hdd'],
    ['type', null],
    ['instance_ids[0]', ['i-2']],
  ])('is refused at %s for %j', (path, value) => {
    const field = /^\w+/.exec(path)?.[0] ?? '';
    const asked = JSON.parse(JSON.stringify({ ...volume, [field]: value }));
    expect(validateVolume(asked, context).map((issue) => issue.path)).toEqual([path]);
  });
});
