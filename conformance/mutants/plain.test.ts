import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Variation } from './mutant.ts';
import { allMutants } from './mutants.ts';
import { expectNoFailureInPlain } from './plain.ts';
import { variations } from './variations.ts';

/** The forms that need another sign-in or another life. The matrix has all of them. */
const FORMS = [
  'tokens-only',
  'logins-only',
  'instant',
  'no-resume',
  'never-stops',
  'restarts-for-half-a-minute',
];

const forms = FORMS.map((id) => {
  const form = variations.find((one) => one.id === id);
  if (form === undefined) throw new Error(`there is no ${id}`);
  return [id, form] as const;
});

describe('a plain run', () => {
  it.each(forms)('fails nowhere in %s', (_id, variation) => expectNoFailureInPlain(variation));

  it('fails nowhere in a server with entity tags', () => {
    const behave: Variation['behave'] = (rules) => ({
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        if (request.route !== 'GET /instances/{instanceId}' || usual.status !== 200) return usual;
        const etag = `"${createHash('sha256').update(JSON.stringify(usual.json)).digest('hex')}"`;
        if (request.headers['if-none-match'] === etag) return { status: 304, headers: { etag } };
        return { ...usual, headers: { ...usual.headers, etag } };
      },
    });
    return expectNoFailureInPlain({ id: 'entity-tags', why: 'HTTP has them', behave });
  });

  it('fails in a server that is wrong for everyone', async () => {
    const mutant = allMutants.find(({ id }) => id === 'disk-lost-by-a-stop');
    if (mutant === undefined) throw new Error('there is no such mutant');
    const behave: Variation['behave'] = (rules, clock) => mutant.behave(rules, () => {}, clock);
    await expect(expectNoFailureInPlain({ id: 'x', why: 'x', behave })).rejects.toThrow();
  });
});
