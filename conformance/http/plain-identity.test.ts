import { describe, expect, it } from 'vitest';
import { suiteNames } from './identity.ts';
import { namesOfRun, plainIdentity, plainNames } from './plain-identity.ts';

const SOURCE = { seed: 'a seed', installation: '00c0ffee' };
const { nameOf, isOwn } = plainNames(SOURCE);

describe('the names of a plain run', () => {
  it('look like those of a marketplace, and none begins with another', () => {
    const names = Array.from({ length: 999 }, (_, index) => nameOf(index + 1));
    for (const name of names) expect(name).toMatch(/^bm-00c0ffee-[0-9a-f]{32}$/);
    expect(new Set(names).size).toBe(999);
  });

  it('are known by the seed, also with what a target appends, and no other names of the installation are', () => {
    expect([nameOf(1), `${nameOf(999)}-2`].map(isOwn)).toEqual([true, true]);
    expect(['bm-00c0ffee-', `bm-00c0ffee-${'0'.repeat(32)}`, 'berth-conf-run-001', ''].map(isOwn)).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(plainNames({ ...SOURCE, seed: 'another' }).isOwn(nameOf(1))).toBe(false);
  });

  it('can be drawn again by a reader of the transcript', () => {
    const settings = {
      pollIntervalMs: 1,
      readyTimeoutMs: 1,
      maxCostUsd: 1,
      maxMinutes: 1,
      hasSecondKey: false,
    };
    const run = { runId: 'run', seed: SOURCE.seed };
    const plain = { ...settings, plain: true, installation: SOURCE.installation } as const;
    expect(namesOfRun({ ...run, settings: plain }).nameOf(3)).toBe(nameOf(3));
    expect(namesOfRun({ ...run, settings }).nameOf(3)).toBe(suiteNames('run').nameOf(3));
  });
});

it('key comments are those of people: as good as never the same, and without a word of the suite', () => {
  const { keyComment } = plainIdentity(SOURCE);
  const comments = Array.from({ length: 200 }, (_, index) => keyComment(`${index}-first`));
  expect(comments.join(' ')).not.toMatch(/berth|conf|suite|test/i);
  expect(comments.filter((comment) => /^[\w.-]+@[\w.-]+$/.test(comment)).length).toBeGreaterThan(160);
  expect(comments).toContain('');
  expect(new Set(comments).size).toBeGreaterThan(120);
  expect(keyComment('1-first')).toBe(comments[1]);
});
