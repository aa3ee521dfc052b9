const NEWLINE = 0x0a;

export interface LineHandlers {
  onLine: (line: string) => void;
  onTooLong: (start: string) => void;
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
    this.#parts = [];
    this.#bytes = 0;
    this.#isDropping = false;
    if (line !== '') this.#handlers.onLine(line);
  }

  #text(): string {
    const [only] = this.#parts;
    return (this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts)).toString();
  }
}
