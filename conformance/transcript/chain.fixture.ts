import { Chain } from './chain.ts';
import type { TranscriptRecord } from './records.ts';

/** The records of a transcript's text, without its links. */
export function unlinked(text: string): TranscriptRecord[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { link: _, ...record } = JSON.parse(line);
      return record;
    });
}

/** The text of a transcript of these records, with links that follow from them. */
export function linked(records: readonly TranscriptRecord[]): string {
  const chain = new Chain();
  return records.map((record) => `${chain.lineOf(record)}\n`).join('');
}

/** The same transcript as an earlier version of the suite wrote it. */
export function withoutChain(text: string): string {
  const [run, ...rest] = unlinked(text);
  if (run?.kind !== 'run') throw new Error('it does not begin with its run');
  const { isChained: _, ...earlier } = run;
  return linked([earlier, ...rest]);
}
