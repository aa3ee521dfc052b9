import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { instanceTypeSchema } from '../../contract/configuration.ts';
import { nameSchema } from '../../contract/instance.ts';
import { MAX_NOTE_BYTES, readNote } from '../model/platform-resource.ts';
import type { InstanceRecord } from '../model/records.ts';
import { instanceNoteSchema, toNote } from './note.ts';

const INSTALLATION = 'a1b2c3';
const hexId = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 32, maxLength: 32 });
const token = fc.string({ minLength: 1, maxLength: 255, unit: 'grapheme-ascii' });
const name = fc
  .string({ minLength: 1, maxLength: 80, unit: 'binary' })
  .filter((text) => nameSchema.safeParse(text).success);
const gigabytes = fc.double({ min: 0.5, max: 100_000, noNaN: true });

const records: fc.Arbitrary<InstanceRecord> = fc
  .record({
    hex: hexId,
    accountId: token,
    name: fc.option(name),
    offerId: token,
    region: token,
    priceMicroUsdPerHour: fc.nat(),
    createdAt: fc.nat(),
    sshKeys: fc.array(
      fc.constant('a key').map((comment) => newPublicKey(comment)),
      { maxLength: 4 },
    ),
    spec: fc.record({
      instanceType: fc.constantFrom(...instanceTypeSchema.options),
      vcpus: fc.integer({ min: 1, max: 512 }),
      memoryGb: gigabytes,
      storageGb: gigabytes,
      gpuCount: fc.option(fc.integer({ min: 0, max: 16 }), { nil: undefined }),
      gpuType: fc.option(token, { nil: undefined }),
      image: token,
      onStop: fc.constantFrom('release' as const, 'hold' as const),
      resumable: fc.boolean(),
      restartable: fc.boolean(),
      onlineWithinMs: fc.integer({ min: 1, max: 86_400_000 }),
    }),
  })
  .map(({ hex, spec, sshKeys, ...rest }) =>
    instance(`inst-${hex}`, {
      ...rest,
      status: 'ONLINE',
      updatedAt: rest.createdAt,
      version: 3,
      createOpenUntil: null,
      spec: { ...spec, sshKeys, cloudInit: { runcmd: ['echo the-secret'] } },
    }),
  );

const read = (record: InstanceRecord, note: string) =>
  readNote({ ref: record.ownerRef, note }, INSTALLATION, instanceNoteSchema);

/** The fields of a row that a note restores. */
function notedOf({
  id,
  accountId,
  name,
  offerId,
  region,
  spec,
  priceMicroUsdPerHour,
  createdAt,
}: InstanceRecord) {
  const kept = { ...spec, cloudInit: undefined };
  return { id, accountId, name, offerId, region, spec: kept, priceMicroUsdPerHour, createdAt };
}

describe('the note of an instance', () => {
  it('brings back all of the row that cannot be observed, and holds no secret', () => {
    fc.assert(
      fc.property(records, (record) => {
        const note = toNote(INSTALLATION, record);
        const reading = read(record, note);
        expect(reading.owner).toBe('ours');
        expect(reading).toMatchObject({ value: notedOf(record) });
        expect(note).not.toContain('the-secret');
      }),
      { numRuns: 300 },
    );
  });

  const [sample] = fc.sample(records, { numRuns: 1, seed: 1 });
  if (sample === undefined) throw new Error('no sample');
  const withKeys = (sshKeys: string[]): InstanceRecord => ({ ...sample, spec: { ...sample.spec, sshKeys } });
  const keysAfter = (record: InstanceRecord) => {
    const note = toNote(INSTALLATION, record);
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(MAX_NOTE_BYTES);
    const reading = read(record, note);
    return reading.owner === 'ours' ? reading.value.spec.sshKeys : reading.owner;
  };

  it('goes without the comments of its keys where they are too long, and then without the keys', () => {
    const keys = Array.from({ length: 32 }, () => newPublicKey('c'.repeat(200)));
    const bare = keys.map((line) => line.split(' ', 2).join(' '));
    expect(keysAfter(withKeys(keys))).toEqual(bare);
    expect(keysAfter(withKeys(keys.slice(0, 8)))).toEqual(keys.slice(0, 8));
    const long = Array.from({ length: 32 }, () => `ssh-rsa ${'A'.repeat(2_000)}`);
    expect(keysAfter(withKeys(long))).toEqual([]);
  });

  it('fits whatever an instance is called', () => {
    const longest = { ...withKeys([]), name: '\u{1F680}'.repeat(127), accountId: 'a'.repeat(255) };
    expect(keysAfter(longest)).toEqual([]);
  });

  it.each<[string, string | undefined, string]>([
    ['of another installation', toNote('other', sample), 'foreign'],
    ['that is missing', undefined, 'unknown'],
    ['that is no JSON', '{"installation":', 'unknown'],
    ['that is JSON of something else', '[1]', 'unknown'],
    ['of a volume', toNote(INSTALLATION, sample).replace('"instance"', '"volume"'), 'unknown'],
    ['of another id', toNote(INSTALLATION, { ...sample, id: `inst-${'0'.repeat(32)}` }), 'unknown'],
    ['with a key that is none', toNote(INSTALLATION, withKeys(['ssh-rsa nothing'])), 'unknown'],
    ['with a NUL', toNote(INSTALLATION, { ...sample, region: 'a\0' }), 'unknown'],
    ['with a price that is none', toNote(INSTALLATION, { ...sample, priceMicroUsdPerHour: -1 }), 'unknown'],
    [
      'that is longer than any of ours',
      `${' '.repeat(MAX_NOTE_BYTES)}${toNote(INSTALLATION, sample)}`,
      'unknown',
    ],
  ])('%s is not taken for one of this instance', (_what, note, owner) => {
    const resource = { ref: sample.ownerRef, ...(note !== undefined && { note }) };
    expect(readNote(resource, INSTALLATION, instanceNoteSchema).owner).toBe(owner);
  });

  it.each([
    ['without the name of a platform is of "default", by which all went before', undefined, 'foreign'],
    ['of another configured platform is left to it', 'default', 'foreign'],
    ['of a platform that is not configured any more is ours', 'gone', 'ours'],
  ])('%s', (_what, platform, owner) => {
    const note = JSON.stringify({ ...JSON.parse(toNote(INSTALLATION, sample)), platform });
    const resource = { ref: sample.ownerRef, note };
    expect(readNote(resource, INSTALLATION, instanceNoteSchema, new Set(['default'])).owner).toBe(owner);
    expect(readNote(resource, INSTALLATION, instanceNoteSchema, new Set(['east'])).owner).toBe('ours');
  });
});
