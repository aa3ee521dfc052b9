import { expect, it } from 'vitest';
import { whatItProves } from './words.ts';

const only = '; only a run of your own cannot be invented';

it.each([
  [{}, `the holder of the key says so${only}`],
  [{ judged_by: '1' }, `the holder of the key says so, of a transcript that could be edited${only}`],
  [{ nonce: 'market-1' }, `the holder of the key says so, for the nonce that it names${only}`],
])('the signature of %j proves that %s', (report, sentence) => {
  expect(whatItProves(report)).toBe(sentence);
});
