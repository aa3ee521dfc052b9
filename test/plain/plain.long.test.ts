import { beforeAll, describe, expect, it } from 'vitest';
import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import type { Random } from '../../src/ports/clock.ts';
import { balancedAccuracy, type Classifier, type Example, forest, logisticRegression } from './classifier.ts';
import { featuresOf } from './features.ts';
import { recordMarketplace } from './marketplace-session.ts';
import { recordRun } from './recorded-run.ts';
import type { Received } from './traffic.ts';

/** Sessions of each kind. One of three is not trained on. */
const SESSIONS = 18;
const isUnseen = (index: number): boolean => index % 3 === 0;

type Sessions = readonly (readonly Received[])[];

let marketplaces: Sessions;
let plainRuns: Sessions;
let usualRuns: Sessions;

function randomOf(seed: string): Random {
  const { next } = createSeededRandom(seed);
  return { next, bytes: (length) => Buffer.from(Array.from({ length }, () => Math.floor(next() * 256))) };
}

async function record(
  session: (index: number) => Promise<Received[]>,
  count = SESSIONS,
): Promise<Received[][]> {
  const sessions: Received[][] = [];
  for (let index = 0; index < count; index++) sessions.push(await session(index));
  return sessions;
}

beforeAll(async () => {
  marketplaces = await record((index) =>
    recordMarketplace(randomOf(`marketplace ${index}`), 1 + (index % 2)),
  );
  plainRuns = await record((index) =>
    recordRun(`plain ${index}`, index % 2 === 0 ? 'lifecycle' : 'full', { plain: true }),
  );
  usualRuns = await record((index) => recordRun(`usual ${index}`, 'lifecycle', {}), SESSIONS / 3);
}, 900_000);

/** The balanced accuracy on requests of sessions that the classifier has not seen. */
function accuracyOn(runs: Sessions, train: (examples: readonly Example[]) => Classifier): number {
  const examples = (isKept: (index: number) => boolean): Example[] =>
    [
      { sessions: marketplaces, isSuite: false },
      { sessions: runs, isSuite: true },
    ].flatMap(({ sessions, isSuite }) =>
      sessions.flatMap((session, index) =>
        isKept(index) ? featuresOf(session).map((features) => ({ features, isSuite })) : [],
      ),
    );
  return balancedAccuracy(train(examples((index) => !isUnseen(index))), examples(isUnseen));
}

describe.each([
  ['a logistic regression on pairs of features', logisticRegression],
  ['a forest', forest],
])('%s', (what, train) => {
  it('does not tell a plain run from a marketplace', () => {
    const accuracy = accuracyOn(plainRuns, train);
    process.stdout.write(`${what}: ${accuracy.toFixed(3)} for plain runs\n`);
    expect(accuracy).toBeLessThanOrEqual(0.55);
  });

  it('tells a plain run whose polls are off the grid of a marketplace', () => {
    const isPoll = ({ method, path }: Received) => method === 'GET' && path.startsWith('/instances/');
    const shifted = plainRuns.map((run) =>
      run.map((one) => (isPoll(one) ? { ...one, at: one.at + 60 } : one)),
    );
    expect(accuracyOn(shifted, train)).toBeGreaterThan(0.7);
  });

  it('tells a usual run from a marketplace', () => {
    expect(accuracyOn(usualRuns, train)).toBeGreaterThan(0.95);
  });
});
