import { expect, it } from 'vitest';
import { Source, sourcesIn } from './source-tree.ts';

const inProduction = (folder: string): Source[] =>
  sourcesIn(folder).filter(({ path, isForTests }) => !isForTests && !path.startsWith('conformance/mutants/'));

/** The files that match, in the order of their paths. */
const matching = (pattern: RegExp, files: readonly Source[]): string[] =>
  files.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

const WRITES =
  /\bprocess\b[^;]{0,40}\bstd(?:out|err)\b|\bstd(?:out|err)\b[^;]{0,40}=\s*process\b|\bfd: [12]\b|\bwriteSync\(\s*[12]\b/;

it('only the printers write to the terminal, which make visible what it would act on', () => {
  // The linter refuses console.*.
  const files = ['src', 'conformance'].flatMap(inProduction);
  expect(matching(WRITES, files)).toEqual([
    'src/runtime/log.ts',
    'src/runtime/print.ts',
    'conformance/cli/terminal.ts',
  ]);
});

it('finds a write to the terminal', () => {
  const writes = ['process?.stderr?.write(a);', 'const { stdin, stdout } = process;', 'writeSync(2, a);'];
  expect(
    matching(
      WRITES,
      [...writes, 'printLine(a);'].map((text) => new Source(text, text)),
    ),
  ).toEqual(writes);
});

it('only a worker of the marketplace calls a provider', () => {
  const files = inProduction('src/marketplace').filter(
    ({ path }) => !path.startsWith('src/marketplace/sync/'),
  );
  // The worker reads the catalog through this.
  expect(matching(/\bclient\s*\.\s*(?!close\b)\w+\(/, files)).toEqual([
    'src/marketplace/providers/read-catalog.ts',
  ]);
});

/** Who records a request to remove something. Nothing else makes an order: not an absence, a loss or a listing. */
const RECORDERS = [
  // A tenant's or an operator's DELETE.
  'src/orchestrator/instances/destroy.ts',
  'src/orchestrator/volumes/delete.ts',
  'src/orchestrator/operate/actions/instances.ts',
  // What a failed create made, or an earlier attempt.
  'src/orchestrator/steps/fail.ts',
  'src/orchestrator/steps/volume/create.ts',
  'src/orchestrator/steps/volume/move.ts',
  'src/orchestrator/platform/superseded-attempts.ts',
  // A policy of the operator.
  'src/orchestrator/steps/instance/ended.ts',
  // `berth driver test`, and the simulator's other process, which reads an order from the wire.
  'src/drivers/kit/checks/bench.ts',
  'src/drivers/simulator/remote/protocol.ts',
];

it('an order to destroy is made only where a request for it is recorded [order-names-request]', () => {
  const files = inProduction('src').filter(({ path }) => path !== 'src/orchestrator/model/destroy-order.ts');
  expect(matching(/\brecordedOrder\b/, files)).toEqual(RECORDERS.toSorted());
});
