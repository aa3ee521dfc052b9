import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { notInQuarantine, readQuarantine } from './quarantine.ts';

const entry = {
  test: 'keeps (all) of it',
  file: 'src/a.test.ts',
  failure: '1 is not 2',
  date: '2026-11-28',
  seed: 7,
};

describe('test/quarantine.yaml', () => {
  it('has at most three tests, each with its failure, date and seed', () => {
    expect(readQuarantine().length).toBeLessThanOrEqual(3);
    expect(readQuarantine(stringify([entry]))).toEqual([entry.test]);
    expect(() => readQuarantine(stringify([entry, entry, entry, entry]))).toThrow('3');
    expect(() => readQuarantine(stringify([{ ...entry, date: undefined }]))).toThrow('date');
  });

  it('leaves out a test by its whole title, and no other', () => {
    const others = notInQuarantine([entry.test]);
    expect(others?.test('a store keeps (all) of it')).toBe(false);
    expect(others?.test('a store keeps (all) of it twice')).toBe(true);
    expect(notInQuarantine([])).toBeUndefined();
  });
});
