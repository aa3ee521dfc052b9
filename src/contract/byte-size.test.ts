import { expect, it } from 'vitest';
import { toByteSize } from './byte-size.ts';

it.each([
  [0, '0 MB'],
  [12_300_000, '12 MB'],
  [999_999_999, '999 MB'],
  [1e9, '1.0 GB'],
  [2.35e12, '2350.0 GB'],
])('%s bytes are %s', (bytes, text) => {
  expect(toByteSize(bytes)).toBe(text);
});
