import fc from 'fast-check';
import { expect, it } from 'vitest';
import { nameSchema } from '../../contract/instance.ts';
import { MAX_NOTE_BYTES, readNote } from '../model/platform-resource.ts';
import type { VolumeRecord } from '../model/records.ts';
import { toNote, volumeNoteSchema } from './note.ts';

const token = fc.string({ minLength: 1, maxLength: 255, unit: 'grapheme-ascii' });
const records: fc.Arbitrary<VolumeRecord> = fc
  .record({
    hex: fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 32, maxLength: 32 }),
    accountId: token,
    name: fc
      .string({ minLength: 1, maxLength: 80, unit: 'binary' })
      .filter((text) => nameSchema.safeParse(text).success),
    sizeGb: fc.double({ min: 0.001, max: 1_000_000, noNaN: true }),
    region: token,
    type: fc.option(token),
    priceMicroUsdPerHour: fc.nat(),
    createdAt: fc.nat(),
    requestId: fc.option(fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme-ascii' })),
  })
  .map(({ hex, ...rest }) => ({
    ...rest,
    id: `vol-${hex}`,
    platform: 'default',
    ownerRef: `berth-vol-${hex}`,
    status: 'ATTACHED',
    deletedAt: null,
    createOpenUntil: null,
    host: null,
    destroyOrder: null,
  }));

it('the note of a volume brings back all of the row that cannot be observed', () => {
  fc.assert(
    fc.property(records, (record) => {
      const note = toNote('here', record);
      const { ownerRef, platform: _platform, status: _status, ...rest } = record;
      const {
        deletedAt: _deletedAt,
        createOpenUntil: _open,
        host: _host,
        destroyOrder: _order,
        ...noted
      } = rest;
      expect(Buffer.byteLength(note)).toBeLessThanOrEqual(MAX_NOTE_BYTES);
      const reading = readNote({ ref: ownerRef, note }, 'here', volumeNoteSchema);
      expect(reading).toMatchObject({ owner: 'ours', value: noted });
      expect(readNote({ ref: ownerRef, note }, 'elsewhere', volumeNoteSchema)).toEqual({ owner: 'foreign' });
      expect(readNote({ ref: `${ownerRef}0`, note }, 'here', volumeNoteSchema)).toEqual({ owner: 'unknown' });
    }),
    { numRuns: 300 },
  );
});
