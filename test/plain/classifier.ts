import { createHash } from 'node:crypto';

/** One request: its features, and whether it came from the suite. */
export interface Example {
  features: readonly string[];
  isSuite: boolean;
}

/** The probability that a request came from the suite. */
export type Classifier = (features: readonly string[]) => number;

const BITS = 18;
const ROUNDS = 6;
const RATE = 0.15;
const DECAY = 1e-5;

/** Logistic regression on features and on all pairs of them, hashed, with steps that shrink for what was often seen. */
export function logisticRegression(examples: readonly Example[]): Classifier {
  const weights = new Float64Array(2 ** BITS);
  const seen = new Float64Array(2 ** BITS).fill(1e-8);
  const weightOf = balance(examples);
  const rows = examples.map(({ features, isSuite }) => ({ at: indexesOf(features), isSuite }));
  const score = (at: Int32Array): number => {
    let sum = 0;
    for (const index of at) sum += weights[index] ?? 0;
    return 1 / (1 + Math.exp(-sum));
  };
  for (let round = 0; round < ROUNDS; round++)
    for (const { at, isSuite } of inMixedOrder(rows, round)) {
      const error = (score(at) - (isSuite ? 1 : 0)) * weightOf(isSuite);
      for (const index of at) {
        const gradient = error + DECAY * (weights[index] ?? 0);
        seen[index] = (seen[index] ?? 0) + gradient * gradient;
        weights[index] = (weights[index] ?? 0) - (RATE * gradient) / Math.sqrt(seen[index] ?? 1);
      }
    }
  return (features) => score(indexesOf(features));
}

const TREES = 16;
const DEPTH = 8;
const TRIED = 40;
const LEAST = 20;

type Tree = { share: number } | { feature: string; present: Tree; absent: Tree };

/** A forest: each tree grows on drawn examples, and each of its splits is the best of some drawn features. */
export function forest(examples: readonly Example[]): Classifier {
  const weightOf = balance(examples);
  const rows = examples.map(({ features, isSuite }) => ({ features: new Set(features), isSuite }));
  const trees = Array.from({ length: TREES }, (_, tree) => {
    const next = randomOf(`tree ${tree}`);
    const drawn = rows.map(() => rows[Math.floor(next() * rows.length)]).filter((row) => row !== undefined);
    return grow(drawn, DEPTH, next, weightOf);
  });
  return (features) => {
    const set = new Set(features);
    return trees.reduce((sum, tree) => sum + shareOf(tree, set), 0) / trees.length;
  };
}

interface Row {
  features: ReadonlySet<string>;
  isSuite: boolean;
}

function grow(
  rows: readonly Row[],
  depth: number,
  next: () => number,
  weightOf: (isSuite: boolean) => number,
): Tree {
  const [suite, all] = massOf(rows, weightOf);
  const leaf = { share: all === 0 ? 0.5 : suite / all };
  if (depth === 0 || rows.length < 2 * LEAST || leaf.share === 0 || leaf.share === 1) return leaf;
  const candidates = new Set<string>();
  for (let count = 0; count < TRIED; count++) {
    const features = [...(rows[Math.floor(next() * rows.length)]?.features ?? [])];
    const feature = features[Math.floor(next() * features.length)];
    if (feature !== undefined) candidates.add(feature);
  }
  let best: { feature: string; impurity: number } | undefined;
  for (const feature of candidates) {
    const [inSuite, inAll, count] = massOf(
      rows.filter(({ features }) => features.has(feature)),
      weightOf,
    );
    if (count < LEAST || rows.length - count < LEAST) continue;
    const impurity = gini(inSuite, inAll) + gini(suite - inSuite, all - inAll);
    if (best === undefined || impurity < best.impurity) best = { feature, impurity };
  }
  if (best === undefined) return leaf;
  const { feature } = best;
  const branch = (has: boolean) =>
    grow(
      rows.filter(({ features }) => features.has(feature) === has),
      depth - 1,
      next,
      weightOf,
    );
  return { feature, present: branch(true), absent: branch(false) };
}

function massOf(
  rows: readonly Row[],
  weightOf: (isSuite: boolean) => number,
): [suite: number, all: number, count: number] {
  let suite = 0;
  let all = 0;
  for (const { isSuite } of rows) {
    const weight = weightOf(isSuite);
    all += weight;
    if (isSuite) suite += weight;
  }
  return [suite, all, rows.length];
}

function gini(suite: number, all: number): number {
  return all === 0 ? 0 : (2 * suite * (all - suite)) / all;
}

function shareOf(tree: Tree, features: ReadonlySet<string>): number {
  let at = tree;
  while ('feature' in at) at = features.has(at.feature) ? at.present : at.absent;
  return at.share;
}

/** The mean of the shares of both kinds that are told rightly: 0.5 is a guess. */
export function balancedAccuracy(classifier: Classifier, examples: readonly Example[]): number {
  const rightOf = (isSuite: boolean): number => {
    const own = examples.filter((example) => example.isSuite === isSuite);
    return own.filter(({ features }) => classifier(features) > 0.5 === isSuite).length / own.length;
  };
  return (rightOf(true) + rightOf(false)) / 2;
}

/** Weights so that both kinds count the same, however many examples there are of each. */
function balance(examples: readonly Example[]): (isSuite: boolean) => number {
  const suite = examples.filter(({ isSuite }) => isSuite).length / examples.length;
  return (isSuite) => 0.5 / (isSuite ? suite : 1 - suite);
}

const known = new Map<string, number>();

function indexesOf(features: readonly string[]): Int32Array {
  const codes = [...new Set(features)].map((feature) => {
    const code = known.get(feature) ?? createHash('sha256').update(feature).digest().readInt32LE(0);
    known.set(feature, code);
    return code;
  });
  const mask = 2 ** BITS - 1;
  const pairs = codes.flatMap((one, index) =>
    codes.slice(index + 1).map((other) => Math.imul(one ^ (other >>> 7), 0x9e3779b1 + other)),
  );
  return Int32Array.from([...codes, ...pairs], (code) => code & mask);
}

function inMixedOrder<T>(items: readonly T[], round: number): T[] {
  const next = randomOf(`round ${round}`);
  return items
    .map((item) => ({ item, place: next() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

function randomOf(seed: string): () => number {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
