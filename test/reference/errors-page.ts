import { errorTable } from '../../src/contract/errors.ts';

/** docs/errors.md: every code of the orchestrator. */
export function errorsPage(): string {
  const rows = Object.entries(errorTable).map(
    ([code, { status, retry, meaning }]) => `- \`${code}\` (${status}, ${retry}): ${meaning}`,
  );
  return [
    '# Error codes',
    '',
    'Every error is `{ "error": { "code", "message", "details"? } }`. This page is written from `src/contract/errors.ts`.',
    '',
    'In brackets: the status, and whether to retry. `never`: the same request fails again; `later`: it may succeed unchanged; `changed`:',
    'it succeeds once something is changed.',
    '',
    ...rows,
    '',
  ].join('\n');
}
