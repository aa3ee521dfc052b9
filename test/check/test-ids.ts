import { type Source, sources } from './source-tree.ts';

/**
 * A test that a table refers to has an id at the end of its title, `is adopted, not repeated [create-answer-lost]`, or of
 * the name of one of its cases; `npm test -- -t create-answer-lost` runs it. The id stays when title or file change.
 */
export interface TestId {
  id: string;
  path: string;
  /** Without the id, as it is written: `%s` and `${…}` stay. */
  title: string;
}

const ENDS_IN_ID = /(['"`])((?:(?!\1)[^\n])*) \[([a-z0-9]+(?:-[a-z0-9]+)+)\]\1/g;
const SKIPS = /\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|todo)\b/;

/** The ids of all test files, shared suites and checks. */
export const readTestIds = (): TestId[] =>
  sources.filter(({ path }) => /\.(test|suite|matrix|kill|check)\.ts$/.test(path)).flatMap(testIdsOf);

export const testIdsOf = ({ path, text }: Source): TestId[] =>
  [...text.matchAll(ENDS_IN_ID)].map(([, , title = '', id = '']) => ({ id, path, title }));

/** Whether a test of the file never runs. What runs only on some machines does not count. */
export const skipsTest = ({ text }: Source): boolean => SKIPS.test(text);

/** What is wrong with a reference, if anything. */
export function findProblem(id: string, all: readonly TestId[]): string | undefined {
  const paths = all.filter((test) => test.id === id).map(({ path }) => path);
  if (paths.length === 0) return `no test has the id [${id}]`;
  return paths.length > 1 ? `several tests have the id [${id}]: ${paths.join(', ')}` : undefined;
}
