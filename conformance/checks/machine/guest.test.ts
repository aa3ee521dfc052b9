import { beforeAll, describe, expect, it } from 'vitest';
import { loadRequirements } from '../../contract/requirements.ts';
import { type Need, runAgainst } from '../../mutants/harness.ts';
import type { TranscriptRecord } from '../../transcript/records.ts';
import { judge } from '../../verdict/judge.ts';
import { CHECKS } from '../index.ts';

const { rows } = loadRequirements();

const recordsOf = async (needs: readonly Need[]) => (await runAgainst({}, rows, needs)).records;

/** The verdict on a requirement if the script of a login had printed something else. */
function verdictOn(
  records: readonly TranscriptRecord[],
  id: string,
  changed: Readonly<Record<string, (stdout: string) => string>>,
): string | undefined {
  const altered = records.map((record) => {
    const change = record.kind === 'ssh' ? changed[record.step] : undefined;
    return record.kind === 'ssh' && change !== undefined
      ? { ...record, stdout: change(record.stdout ?? '') }
      : record;
  });
  return judge(altered, rows, CHECKS).find(({ requirement }) => requirement.id === id)?.verdict;
}

/** Replaces what one command of a script printed. */
const part = (name: string, text: string) => (stdout: string) =>
  stdout.replace(
    new RegExp(`(berth-conformance:${name}\n)[^]*?(?=berth-conformance:)`),
    (_all, before: string) => `${before}${text}`,
  );

const noTools = (stdout: string): string =>
  ['cores', 'gpus', 'disks', 'filesystems', 'memory'].reduce((text, name) => part(name, '')(text), stdout);

describe('the size of a machine', () => {
  let records: readonly TranscriptRecord[];
  beforeAll(async () => {
    records = await recordsOf([{ level: 'lifecycle', scenarios: ['online', 'start'] }]);
  });

  // The offer has 2 vcpus, 4 GB of memory and 40 GB of storage.
  it.each([
    ['pass', 'a usual one', (text: string) => text],
    ['not_applicable', 'an image without any tool', noTools],
    ['pass', 'a login that greets', (text: string) => `Welcome!\n${text}`],
    ['warn', 'one core', part('cores', '1\n')],
    [
      'warn',
      'a file system that was not grown',
      part(
        'filesystems',
        'Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda1 2100000 9 9 9% /\n',
      ),
    ],
    [
      'pass',
      'a second disk that is not mounted',
      (text: string) =>
        part(
          'disks',
          'sda disk 20000000000\nsdb disk 20000000000\n',
        )(part('filesystems', '/dev/sda1 19000000 9 9 9% /\n')(text)),
    ],
    [
      'pass',
      'an overlay over the root, and temporary file systems',
      part('filesystems', 'overlay 39000000 9 9 9% /\ntmpfs 100 0 100 0% /run\n'),
    ],
  ])('%s: %s', (verdict, _what, change) => {
    expect(verdictOn(records, 'INS-SIZE-001', { 'online/measure': change })).toBe(verdict);
  });

  it.each([
    ['not_applicable', 'could not be written', 'online/write-file', ''],
    ['fail', 'is lost after the start', 'start/read-file', ''],
    ['fail', 'is another after the start', 'start/read-file', 'of the image\n'],
  ])('%s: a file outside the home %s', (verdict, _what, step, text) => {
    const change = (stdout: string) =>
      ['etc', 'var-lib', 'root'].reduce((all, name) => part(name, text)(all), stdout);
    expect(verdictOn(records, 'INS-DISK-002', { [step]: change })).toBe(verdict);
    expect(verdictOn(records, 'INS-DISK-001', { [step]: change })).toBe('pass');
  });
});

describe('an image that has a folder in memory', () => {
  it('need not keep the files in it over a stop', async () => {
    const records = await recordsOf([{ level: 'lifecycle', scenarios: ['online', 'start'] }]);
    const lost = (stdout: string) => part('etc', '')(stdout);
    const on = (source: string) =>
      part('filesystems', `/dev/vda1 39000000 9 9 9% /\n${source} 39000000 9 9 9% /etc\n`);
    const verdict = (source: string) =>
      verdictOn(records, 'INS-DISK-002', { 'online/write-file': on(source), 'start/read-file': lost });
    expect(verdict('tmpfs')).toBe('pass');
    expect(verdict('/dev/vda2')).toBe('fail');
  });
});

describe('the second machine', () => {
  let records: readonly TranscriptRecord[];
  beforeAll(async () => {
    records = await recordsOf([{ level: 'full', scenarios: ['companion'] }]);
  });

  it.each([
    ['pass', 'another name', 'vda disk 42949672960\nvdz disk 10737418240\n', ''],
    ['warn', 'no disk', 'vda disk 42949672960\n', ''],
    ['pass', 'a folder of the system that is not mounted again', 'vdb disk 10000000000\n', ''],
  ])('%s: shows the volume after a start as %s', (verdict, _what, disks, mounts) => {
    const before = part('mounts', 'tmpfs /run/user/0 tmpfs rw 0 0\n');
    const after = (text: string) => part('disks', disks)(part('mounts', mounts)(text));
    const changed = { 'companion/before-stop': before, 'companion/started/login': after };
    expect(verdictOn(records, 'VOL-STOP-003', changed)).toBe(verdict);
  });

  it('warns of a mount that is lost, and does not judge a volume that is never seen', () => {
    const mounted = (text: string) =>
      part('mounts', '/dev/x /mnt/data ext4 rw 0 0\n')(part('disks', '')(text));
    const unseen = (text: string) => part('mounts', '')(part('disks', '')(text));
    const verdict = (before: typeof mounted) =>
      verdictOn(records, 'VOL-STOP-003', {
        'companion/before-stop': before,
        'companion/started/login': unseen,
      });
    expect(verdict(mounted)).toBe('warn');
    expect(verdict(unseen)).toBe('not_applicable');
  });

  it('is not held to modes that its image has no tool to show', () => {
    const change = (stdout: string) =>
      ['owned', 'everyone', 'large'].reduce((text, name) => part(name, '')(text), stdout);
    for (const id of ['BOOT-FILES-002', 'BOOT-FILES-003'])
      expect(verdictOn(records, id, { 'companion/first-boot': change })).toBe('not_applicable');
  });
});
