const NEWLINE = 0x0a;

export interface LineHandlers {
  onLine: (line: string) => void;
  onTooLong: (start: string) => void;
  /** Whether lines are read now. While they are not, of each chunk only the last line is; the others are counted. */
  isRead: () => boolean;
  onSkipped: (lines: number) => void;
}

/** Splits a stream of bytes into lines. A line that is too long is dropped to its end and reported once. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #handlers: LineHandlers;
  #parts: Buffer[] = [];
  #bytes = 0;
  #isDropping = false;

  constructor(maxBytes: number, handlers: LineHandlers) {
    this.#maxBytes = maxBytes;
    this.#handlers = handlers;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      if (!this.#handlers.isRead()) {
        from = this.#skip(chunk, from);
        end = chunk.lastIndexOf(NEWLINE);
      }
      this.#take(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  /** Emits the text after the last line break. */
  end(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  /** Skips the lines that end in the chunk, except the last one. Returns where that begins. */
  #skip(chunk: Buffer, from: number): number {
    const last = chunk.lastIndexOf(NEWLINE);
    let start = from;
    let lines = 0;
    for (let at = from; at < last; at++) {
      if (chunk[at] !== NEWLINE) continue;
      start = at + 1;
      lines++;
    }
    if (lines > 0) {
      this.#clear();
      this.#handlers.onSkipped(lines);
    }
    return start;
  }

  #take(part: Buffer): void {
    if (this.#isDropping) return;
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes <= this.#maxBytes) return;
    this.#isDropping = true;
    this.#handlers.onTooLong(this.#text().slice(0, 200));
    this.#parts = [];
  }

  #endLine(): void {
    const line = this.#isDropping ? '' : this.#text().trim();
    this.#clear();
    if (line !== '') this.#handlers.onLine(line);
  }

  #clear(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#isDropping = false;
  }

  #text(): string {
    const [only] = this.#parts;
    return (this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts)).toString();
  }
}
