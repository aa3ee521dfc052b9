import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { Reply, TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { type ErrorReply, expectIssues, expectUnharmed, startWithStranger } from './bad-input.fixture.ts';

const fixtures = new URL('../../fixtures/', import.meta.url);
const ED25519 = newPublicKey();
const PRIVATE_KEY_DATA = 'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMw';

let orchestrator: TestOrchestrator;
let strangersVolume = '';
let strangersInstance = '';
let clean: Residue;

beforeAll(async () => {
  ({ orchestrator, strangersVolume, strangersInstance, clean } = await startWithStranger());
});
afterAll(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

/** The reply names the fields, and nothing is left behind. */
async function expectRefused(reply: Reply<ErrorReply>, ...paths: string[]): Promise<ErrorReply['error']> {
  const error = expectIssues(reply, ...paths);
  expect(await residueOf(orchestrator)).toEqual(clean);
  return error;
}

const create = (overrides: Record<string, unknown>): Promise<Reply<ErrorReply>> =>
  orchestrator.request('POST', '/instances', { body: instanceRequest(overrides) });

describe('ssh_keys', () => {
  const invalid = new URL('ssh-keys/invalid/', fixtures);

  it.each(readdirSync(invalid))('refuses %s and does not repeat it', async (file) => {
    const text = readFileSync(new URL(file, invalid), 'utf8');
    const reply = await create({ ssh_keys: [ED25519, text] });
    const { message } = await expectRefused(reply, 'ssh_keys[1]');
    const words = text.split(/\s+/).filter((word) => word.length > 30);
    for (const word of words) expect(reply.text).not.toContain(word.slice(0, 30));
    if (file.startsWith('private-key')) expect(message).toContain('private key');
  });

  it.each([
    ['missing', undefined, 'ssh_keys'],
    ['null', null, 'ssh_keys'],
    ['empty', [], 'ssh_keys'],
    ['a string', ED25519, 'ssh_keys'],
    ['an object', { 0: ED25519 }, 'ssh_keys'],
    ['a list with null', [null], 'ssh_keys[0]'],
    ['a list of lists', [[ED25519]], 'ssh_keys[0]'],
    ['too many', Array.from({ length: 33 }, () => ED25519), 'ssh_keys'],
    ['an empty string', [''], 'ssh_keys[0]'],
    ['several keys in one string', [`${ED25519}\n${newPublicKey()}`], 'ssh_keys[0]'],
    ['a key with CR LF inside', [ED25519.replace(' ', '\r\n')], 'ssh_keys[0]'],
    ['a key with a second line of options', [`${ED25519}\r\ncommand="sh" ${ED25519}`], 'ssh_keys[0]'],
    ['options before the key', [`command="/bin/sh" ${ED25519}`], 'ssh_keys[0]'],
    ['another type than the data has', [ED25519.replace('ssh-ed25519', 'ssh-rsa')], 'ssh_keys[0]'],
    [
      'a private key',
      [`-----BEGIN OPENSSH PRIVATE KEY-----\n${PRIVATE_KEY_DATA}\n-----END OPENSSH PRIVATE KEY-----\n`],
      'ssh_keys[0]',
    ],
  ])('refuses: %s', async (_name, keys, path) => {
    const reply = await create({ ssh_keys: keys });
    await expectRefused(reply, path);
    expect(reply.text).not.toContain(PRIVATE_KEY_DATA);
  });
});

describe('the fields of a create [create-fields]', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ['an unknown offer', { configuration_id: 'nope' }, ['configuration_id']],
    ['an offer that is no string', { configuration_id: 7 }, ['configuration_id']],
    ['an unknown region', { region: 'mars-olympus' }, ['region']],
    [
      'a region where the offer is not sold',
      { configuration_id: 'h100-sxm-1x', region: 'eu-helsinki' },
      ['region'],
    ],
    ['a datacenter code for a region', { region: 'hal-fra1-b' }, ['region']],
    ['a region with a quote', { region: "eu-frankfurt' OR 1=1 --" }, ['region']],
    ['an image that is not offered', { operating_system_image: 'templeos' }, ['operating_system_image']],
    ['an image that is a path', { operating_system_image: '../../etc/passwd' }, ['operating_system_image']],
    ['a disk of 0 GB', { root_disk_size_gb: 0 }, ['root_disk_size_gb']],
    ['a disk of -1 GB', { root_disk_size_gb: -1 }, ['root_disk_size_gb']],
    ['a disk below the least', { root_disk_size_gb: 19 }, ['root_disk_size_gb']],
    ['a disk above the most', { root_disk_size_gb: 1001 }, ['root_disk_size_gb']],
    ['a disk in words', { root_disk_size_gb: '80' }, ['root_disk_size_gb']],
    [
      'another size for a fixed disk',
      { configuration_id: 'h100-sxm-8x', region: 'us-ashburn', root_disk_size_gb: 10 },
      ['root_disk_size_gb'],
    ],
    ['a name that is a number', { name: 5 }, ['name']],
    ['an empty name', { name: '' }, ['name']],
    ['a name with NUL', { name: 'a\0b' }, ['name']],
    ['a name with a line feed', { name: 'a\nb' }, ['name']],
    ['a name that turns its direction', { name: 'safe\u202egnp.exe\u2066' }, ['name']],
    ['a name with what is not seen', { name: 'a\u200bb' }, ['name']],
    ['a name with half a surrogate pair', { name: 'a\ud800' }, ['name']],
    ['a name of 300 characters', { name: 'a'.repeat(300) }, ['name']],
    ['an unknown volume', { volume_ids: ['vol-0'] }, ['volume_ids[0]']],
    ['volumes that are a string', { volume_ids: 'vol-0' }, ['volume_ids']],
    ['a volume id that is a number', { volume_ids: [7] }, ['volume_ids[0]']],
    ['65 volumes', { volume_ids: Array.from({ length: 65 }, () => 'v') }, ['volume_ids']],
    ['cloud_init that is a string', { cloud_init: '#cloud-config' }, ['cloud_init']],
  ])('refuse %s', async (_name, overrides, paths) => {
    const error = await expectRefused(await create(overrides), ...paths);
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(/expected/i);
  });

  it.each(['1e999', '-1e999', '1e308', '123456789012345678901234567890', '-0', '0.0000001'])(
    'refuse a disk of %s GB',
    async (number) => {
      const body = JSON.stringify(instanceRequest({ root_disk_size_gb: 1 })).replace(
        '"root_disk_size_gb":1',
        `"root_disk_size_gb":${number}`,
      );
      await expectRefused(await orchestrator.request('POST', '/instances', { body }), 'root_disk_size_gb');
    },
  );

  it('refuse the volume of another account in the words for an unknown one', async () => {
    const foreign = await expectRefused(await create({ volume_ids: [strangersVolume] }), 'volume_ids[0]');
    const unknown = await expectRefused(
      await create({ volume_ids: [`vol-${'0'.repeat(32)}`] }),
      'volume_ids[0]',
    );
    expect(foreign).toEqual(unknown);
  });

  it('refuse cloud_init for an offer without it [cloud-init-unsupported]', async () => {
    const reply = await create({
      configuration_id: 'a40-1x',
      region: 'us-ashburn',
      cloud_init: { runcmd: ['true'] },
    });
    const error = await expectRefused(reply, 'cloud_init');
    expect(error.code).toBe('cloud_init_unsupported');
  });

  it('tell all that is wrong at once, whatever finds it [create-all-findings]', async () => {
    const everything = {
      region: 'mars-olympus',
      ssh_keys: [ED25519, 'garbage', `restrict ${ED25519}`],
      name: 5,
      operating_system_image: 'templeos',
      root_disk_size_gb: 1,
      cloud_init: { runcmd: 'sh', write_files: [{ path: 'etc/motd', content: 7, permissions: '999' }] },
      volume_ids: [true],
    };
    const paths = ['region', 'ssh_keys[1]', 'ssh_keys[2]', 'operating_system_image', 'root_disk_size_gb'];
    await expectRefused(
      await create(everything),
      ...paths,
      ...['name', 'volume_ids[0]', 'cloud_init.runcmd'],
      ...['path', 'content', 'permissions'].map((field) => `cloud_init.write_files[0].${field}`),
    );
    const { name: _, cloud_init: __, ...onlyForTheCatalog } = everything;
    await expectRefused(
      await create({ ...onlyForTheCatalog, volume_ids: ['nope', strangersVolume] }),
      ...paths,
      ...['volume_ids[0]', 'volume_ids[1]'],
    );
    await expectRefused(
      await create({ configuration_id: 'x', ssh_keys: [''] }),
      'configuration_id',
      'ssh_keys[0]',
    );
  });
});

describe('cloud_init', () => {
  const invalid = new URL('cloud-init/invalid/', fixtures);

  it.each(readdirSync(invalid))('refuses %s', async (file) => {
    const reply = await create({ cloud_init: JSON.parse(readFileSync(new URL(file, invalid), 'utf8')) });
    expect(reply.status).toBe(400);
    const { issues } = reply.body.error.details;
    expect(issues.length).toBeGreaterThan(0);
    for (const { path } of issues) expect(path).toMatch(/^cloud_init(\.|$)/);
    expect(await residueOf(orchestrator)).toEqual(clean);
  });
});

describe('the fields of a volume', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ['no name', { name: undefined }, ['name']],
    ['a name that turns its direction', { name: 'safe\u202egnp.exe\u2066' }, ['name']],
    ['a name with NUL', { name: 'a\0b' }, ['name']],
    ['0 GB', { size_gb: 0 }, ['size_gb']],
    ['too few GB for the type', { size_gb: 1 }, ['size_gb']],
    ['-5 GB', { size_gb: -5 }, ['size_gb']],
    ['a size in words', { size_gb: '100' }, ['size_gb']],
    ['a region without volumes', { region: 'ap-singapore' }, ['region']],
    ['an unknown region', { region: 'mars' }, ['region']],
    ['an unknown type', { type: 'floppy' }, ['type']],
    ['an unknown instance', { instance_ids: ['inst-0'] }, ['instance_ids[0]']],
    ['instances that are a string', { instance_ids: 'inst-0' }, ['instance_ids']],
    [
      'an unknown type and an unknown instance',
      { type: 'floppy', instance_ids: ['x'] },
      ['type', 'instance_ids[0]'],
    ],
  ])('refuse %s', async (_name, overrides, paths) => {
    await expectRefused(
      await orchestrator.request('POST', '/volumes', { body: volumeRequest(overrides) }),
      ...paths,
    );
  });

  it('refuse the instance of another account in the words for an unknown one', async () => {
    const errors = [];
    for (const id of [strangersInstance, `inst-${'0'.repeat(32)}`])
      errors.push(
        await expectRefused(
          await orchestrator.request('POST', '/volumes', { body: volumeRequest({ instance_ids: [id] }) }),
          'instance_ids[0]',
        ),
      );
    expect(errors[0]).toEqual(errors[1]);
  });

  it.each([
    ['attach', { instance_ids: [] }, 'instance_ids'],
    ['attach', {}, 'instance_ids'],
    ['attach', { instance_ids: [7] }, 'instance_ids[0]'],
    ['detach', { instance_ids: [] }, 'instance_ids'],
    ['detach', { instance_ids: null }, 'instance_ids'],
  ])('refuse %s with %j', async (action, body, path) => {
    await expectRefused(
      await orchestrator.request('POST', `/volumes/${strangersVolume}/${action}`, { body }),
      path,
    );
  });
});

it('invalid fields leave nothing behind, and the orchestrator as able as before', async () => {
  await expectUnharmed(orchestrator, clean);
});
