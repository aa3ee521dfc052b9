import { expect, it } from 'vitest';
import type { VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { aVolume } from './samples.fixture.ts';
import {
  noVolumeForTheDead,
  noVolumeIsForgotten,
  rowComesBeforeVolume,
  volumeEndIsTrue,
  volumeFollowsTheTable,
  volumeGoneIsProved,
} from './volume-rows.ts';

const from = (status: VolumeRecord['status'], changes: Partial<VolumeRecord>) => ({
  before: aVolume({ status }),
  after: aVolume({ status, ...changes }),
});
const deleted = from('DELETING', { deletedAt: 5 });

it('I5: refuses what the table has no edge for, and two steps in one commit are fine', () => {
  expect(() => volumeFollowsTheTable(from('AVAILABLE', { status: 'CREATING' }))).toThrow('I5');
  expect(() => volumeFollowsTheTable({ before: undefined, after: aVolume() })).toThrow('I5');
  volumeFollowsTheTable({ before: undefined, after: aVolume({ status: 'CREATING' }) });
  volumeFollowsTheTable(from('CREATING', { status: 'ATTACHING' }));
});

it('I12: a volume that reads 404 and is there', () => {
  expect(() => volumeGoneIsProved(deleted, { exists: true, isDeleteSent: true })).toThrow('I12');
  volumeGoneIsProved(deleted, { exists: false, isDeleteSent: true });
  volumeGoneIsProved(from('DELETING', {}), { exists: true, isDeleteSent: true });
});

it('I3: an end that was not requested, and one of a volume that still exists', () => {
  const deleting = from('AVAILABLE', { status: 'DELETING' });
  expect(() => volumeEndIsTrue(deleting, { exists: true, isDeleteSent: false })).toThrow('nobody asked');
  volumeEndIsTrue(deleting, { exists: true, isDeleteSent: true });
  const failed = from('CREATING', { status: 'ERROR' });
  expect(() => volumeEndIsTrue(failed, { exists: true, isDeleteSent: false })).toThrow('it is there');
  volumeEndIsTrue(failed, { exists: false, isDeleteSent: false });
});

it('I2, I12: a volume without a row, and one for a row that is gone', () => {
  expect(() => rowComesBeforeVolume('berth-vol-1', undefined)).toThrow('I2');
  rowComesBeforeVolume('berth-vol-1', aVolume());
  expect(() => noVolumeForTheDead('berth-vol-1', aVolume({ deletedAt: 7 }))).toThrow('I12');
  noVolumeForTheDead('berth-vol-1', aVolume());
});

it('I9: what a power cut forgot', () => {
  expect(() => noVolumeIsForgotten(aVolume(), null)).toThrow('not there');
  expect(() => noVolumeIsForgotten(aVolume({ deletedAt: 7 }), aVolume())).toThrow('not gone');
  noVolumeIsForgotten(aVolume(), aVolume({ deletedAt: 7 }));
});
