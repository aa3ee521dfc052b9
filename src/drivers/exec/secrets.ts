/** Minimum length of a secret. Shorter values may be ordinary words of a log. */
const LEAST_SECRET = 8;
const REDACTED = '[redacted]';
/** Fields with a driver's own text, at any depth of an answer. They go to logs and to operators. */
const WORDS = new Set(['detail', 'reason', 'finding', 'remedy', 'text']);

/**
 * Values passed to a driver that must not reach logs or operators. Finds them whole, line by line, and in URL, JSON, base64
 * or hex encoding.
 */
export class Secrets {
  readonly #forms: readonly string[];

  constructor(values: readonly string[]) {
    const lines = values.flatMap((value) => [value, ...value.split('\n')]).map((line) => line.trim());
    const long = new Set([...values, ...lines].filter(({ length }) => length >= LEAST_SECRET));
    // Longest first, since a line is contained in its value.
    this.#forms = [...new Set([...long].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    return this.#forms.reduce((cleaned, form) => cleaned.replaceAll(form, REDACTED), text);
  }

  /** Removes the secrets from the text fields of an answer. The protocol limits its nesting depth. */
  cleanAnswer<T>(answer: T): T {
    return this.#forms.length === 0 ? answer : (this.#cleanWords(answer) as T);
  }

  #cleanWords(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#cleanWords(item));
    const entries = Object.entries(value).map(([key, of]) => [
      key,
      WORDS.has(key) && typeof of === 'string' ? this.clean(of) : this.#cleanWords(of),
    ]);
    return Object.fromEntries(entries);
  }
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const texts = [secret, JSON.stringify(secret).slice(1, -1), hex, hex.toUpperCase(), ...base64Of(bytes)];
  // Some languages write `/` as `\/` in JSON.
  return [...texts, ...texts.map((text) => text.replaceAll('/', '\\/')), ...texts.map(encodeURIComponent)];
}

/** The base64 forms of the bytes. Inside a longer value, such as `user:password`, they may be shifted. */
function base64Of(bytes: Buffer): string[] {
  const shifted = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const isShared = ((before + bytes.length) * 8) % 6 !== 0;
    return text.slice(Math.ceil((before * 8) / 6), isShared ? -1 : undefined);
  });
  const forms = [bytes.toString('base64'), ...shifted];
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
}
