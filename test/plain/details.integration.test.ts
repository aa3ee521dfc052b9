import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ReferenceSetup } from '../../conformance/mutants/reference/create-reference.ts';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { recordMarketplace } from './marketplace-session.ts';
import { recordRun } from './recorded-run.ts';
import type { Received } from './traffic.ts';

type Behave = NonNullable<ReferenceSetup['behave']>;

/** What such a server receives from a marketplace and from a plain run. */
async function recordBoth(behave: () => Behave): Promise<Record<'marketplace' | 'plain', Received[]>> {
  const { next } = createSeededRandom('details');
  const random = {
    next,
    bytes: (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(next() * 256))),
  };
  return {
    marketplace: await recordMarketplace(random, 1, behave()),
    plain: await recordRun('details', 'lifecycle', { plain: true }, { behave: behave() }),
  };
}

const isPoll = ({ method, path }: Received): boolean => method === 'GET' && path.startsWith('/instances/');
const isList = ({ method, path }: Received): boolean => method === 'GET' && path === '/instances';
const hasTag = ({ headers }: Received): boolean => headers.some(([name]) => name === 'if-none-match');

/** Answers a read of an instance with an entity tag, and 304 to that tag. */
const withTags: Behave = (rules) => ({
  ...rules,
  answer(request, answer) {
    const usual = rules.answer(request, answer);
    if (request.route !== 'GET /instances/{instanceId}' || usual.status !== 200) return usual;
    const etag = `"${createHash('sha256').update(JSON.stringify(usual.json)).digest('hex').slice(0, 16)}"`;
    if (request.headers['if-none-match'] === etag) return { status: 304, headers: { etag } };
    return { ...usual, headers: { ...usual.headers, etag } };
  },
});

describe('a plain run does what a marketplace does', () => {
  it('with entity tags: it sends them for an instance at rest, and never while a change is under way', async () => {
    const { marketplace, plain } = await recordBoth(() => withTags);
    const shareOf = (session: readonly Received[]): number => {
      const polls = session.filter(isPoll);
      return polls.filter(hasTag).length / polls.length;
    };
    expect(shareOf(marketplace)).toBeGreaterThan(0.5);
    expect(Math.abs(shareOf(plain) - shareOf(marketplace))).toBeLessThan(0.15);
    for (const session of [marketplace, plain])
      expect(
        session.filter((one) => hasTag(one) && ['PROVISIONING', 'STOPPING'].includes(one.shown)),
      ).toEqual([]);
  });

  it('with a read that gets no answer: the next one comes with the next poll', async () => {
    const behave = (): Behave => {
      let polls = 0;
      return (rules) => ({
        ...rules,
        isSent: (request, answer) =>
          request.route === 'GET /instances/{instanceId}' && ++polls === 12
            ? false
            : rules.isSent(request, answer),
      });
    };
    const sessions = await recordBoth(behave);
    for (const [who, session] of Object.entries(sessions)) {
      const polls = session.filter(isPoll);
      const lost = polls.findIndex(({ status }) => status === 0);
      const gapMs = (polls[lost + 1]?.at ?? 0) - (polls[lost]?.at ?? 0);
      expect(lost, who).toBe(11);
      expect(gapMs, who).toBeGreaterThanOrEqual(9_000);
    }
  });

  it('with a create that gets no answer: it looks for the machine at the same pauses', async () => {
    const behave = (): Behave => (rules, clock) => {
      let createdAt = Number.POSITIVE_INFINITY;
      return {
        ...rules,
        isSent(request, answer) {
          if (request.route !== 'POST /instances' || createdAt !== Number.POSITIVE_INFINITY)
            return rules.isSent(request, answer);
          createdAt = clock.now();
          return false;
        },
        isListed: (instance) => rules.isListed(instance) && clock.now() - createdAt > 25_000,
      };
    };
    const { marketplace, plain } = await recordBoth(behave);
    for (const [who, session] of Object.entries({ marketplace, plain })) {
      const since = session.find(({ method, path }) => method === 'POST' && path === '/instances')?.at ?? 0;
      const lists = session.filter((one) => isList(one) && one.at > since && one.at - since < 30_000);
      const seconds = lists.map(({ at }) => Math.round((at - since) / 1_000));
      expect(seconds, who).toEqual(expect.arrayContaining([2, 4, 8, 16, 26]));
      // One may be that of every two minutes.
      expect(seconds.length, who).toBeLessThanOrEqual(6);
    }
  });
});

it('a plain run polls on while a login hangs', async () => {
  const received = await recordRun('slow logins', 'lifecycle', { plain: true }, { loginMs: 19_000 });
  const polls = received.filter(isPoll).map(({ at }) => at);
  const gaps = polls.slice(1).map((at, index) => at - (polls[index] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(30_500);
  expect(polls.length).toBeGreaterThan(50);
});
