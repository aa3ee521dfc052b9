import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { recognitionMutants } from './access/recognition.mutants.ts';
import { expectKilled } from './matrix.ts';
import type { Mutant, Variation } from './mutant.ts';
import { expectNoFailureInPlain, expectUnseenInUsual } from './plain.ts';
import { variations } from './variations.ts';

/** Each kind of sign, and the forms that need another sign-in or another life. The matrix has all of them. */
const SIGNS = ['destroys-for-the-user-agent-of-the-suite-only', 'injects-keys-of-the-suite-only'];
const FORMS = [
  'tokens-only',
  'logins-only',
  'instant',
  'no-resume',
  'never-stops',
  'restarts-for-half-a-minute',
];

const chosen = <T extends Mutant | Variation>(
  list: readonly T[],
  ids: readonly string[],
): (readonly [string, T])[] =>
  ids.map((id) => {
    const found = list.find((one) => one.id === id);
    if (found === undefined) throw new Error(`there is no ${id}`);
    return [id, found];
  });

describe('a server that recognises the suite', () => {
  it.each(chosen(recognitionMutants, SIGNS))(
    '%s: a usual run sees nothing, and a plain run fails',
    async (_id, mutant) => {
      await expectUnseenInUsual(mutant);
      await expectKilled(mutant);
    },
  );
});

describe('a plain run', () => {
  it.each(chosen(variations, FORMS))('fails nowhere in %s', (_id, variation) =>
    expectNoFailureInPlain(variation),
  );

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
    const [mutant] = recognitionMutants;
    if (mutant === undefined) throw new Error('there are none');
    const behave: Variation['behave'] = (rules, clock) => mutant.behave(rules, () => {}, clock);
    await expect(expectNoFailureInPlain({ id: 'x', why: 'x', behave })).rejects.toThrow();
  });
});
