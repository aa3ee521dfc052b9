import { expect, it } from 'vitest';
import { whatItProves } from './proves.ts';

const challenge_sha256 = 'c1'.repeat(32);
const only = '; only a run of your own cannot be invented';

it.each([
  [{}, false, `the holder of the key says so${only}`],
  [{ judged_by: '1' }, false, `the holder of the key says so, of a transcript that could be edited${only}`],
  [
    { challenge_sha256 },
    false,
    `the holder of the key says so, for a challenge that \`verify --challenge\` compares${only}`,
  ],
  [
    { challenge_sha256 },
    true,
    `the holder of the key says so, and it is not older than its challenge${only}`,
  ],
  [
    { challenge_sha256, judged_by: '1' },
    true,
    `the holder of the key says so, of a transcript that could be edited, and it is not older than its challenge${only}`,
  ],
])('the signature of %j proves, with its challenge compared (%s), that %s', (report, answers, sentence) => {
  expect(whatItProves(report, answers)).toBe(sentence);
});
