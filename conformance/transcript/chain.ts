import { createHash } from 'node:crypto';
import { isObject } from '../text/json.ts';
import type { TranscriptRecord } from './records.ts';

/** The link before the first line. */
const FIRST = createHash('sha256').update('berth-conformance-transcript/1').digest('hex');

/**
 * The hash chain of a transcript. Each line has a `link`: the SHA-256, in hex, of the link before it, a newline, and the
 * JSON text of the line without its `link`. The link before the first line is always the same.
 * Only lines have links; records in memory do not.
 */
export class Chain {
  #last: string | undefined;

  /** The line of the next record, without its newline. Without links if the `run` record does not announce them. */
  lineOf(record: TranscriptRecord): string {
    const text = JSON.stringify(record);
    const link = this.#next(record, text);
    return link === undefined ? text : `${text.slice(0, -1)},"link":"${link}"}`;
  }

  /** Whether a line that was read has the link that follows from the lines before it. */
  accepts(record: TranscriptRecord, line: unknown): boolean {
    if (!isObject(line)) return false;
    const { link, ...rest } = line;
    return link === this.#next(record, JSON.stringify(rest));
  }

  #next(record: TranscriptRecord, text: string): string | undefined {
    if (record.kind === 'run' && record.isChained === true) this.#last = FIRST;
    if (this.#last === undefined) return undefined;
    this.#last = createHash('sha256').update(`${this.#last}\n${text}`).digest('hex');
    return this.#last;
  }
}
