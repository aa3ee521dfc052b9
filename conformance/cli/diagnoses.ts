import { type Diagnosis, toSentence } from '../doctor/diagnosis.ts';
import type { Terminal } from './terminal.ts';

const WORDS: Readonly<Record<Diagnosis['state'], string>> = { ok: 'OK', note: 'NOTE', config: 'CONFIG' };

/** One line for each: state, subject, what was found and what to do. */
export function toLines(diagnoses: readonly Diagnosis[]): string {
  const width = Math.max(...diagnoses.map(({ subject }) => subject.length), 0);
  return diagnoses
    .map((each) => `${WORDS[each.state].padEnd(6)}  ${each.subject.padEnd(width)}  ${toSentence(each)}\n`)
    .join('');
}

/** Tells what stands in the way of a run, or is worth knowing before it. */
export function tellNotable(diagnoses: readonly Diagnosis[], terminal: Terminal): void {
  terminal.err(toLines(diagnoses.filter(({ state }) => state !== 'ok')));
}
