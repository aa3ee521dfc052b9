/** Shorter values are words that a log may have. */
const LEAST_SECRET = 8;
const REDACTED = '[redacted]';
/** What a driver says in its own words, at any depth of an answer: it goes to logs, to operators and to tenants. */
const WORDS = new Set(['detail', 'reason']);

/** Values that a driver was given, which nobody else is to see: whole, line by line, and as a URL or JSON has them. */
export class Secrets {
  readonly #forms: readonly string[];

  constructor(values: readonly string[]) {
    const lines = values.flatMap((value) => [value, ...value.split('\n')]).map((line) => line.trim());
    const long = lines.filter(({ length }) => length >= LEAST_SECRET);
    const forms = long.flatMap((line) => {
      const json = JSON.stringify(line).slice(1, -1);
      // Some languages write `/` as `\/` in JSON.
      return [line, encodeURIComponent(line), json, json.replaceAll('/', '\\/')];
    });
    // A line is a part of its value.
    this.#forms = [...new Set(forms)].sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    return this.#forms.reduce((cleaned, form) => cleaned.replaceAll(form, REDACTED), text);
  }

  /** An answer without them in what it says in words. */
  cleanAnswer(value: unknown): unknown {
    if (this.#forms.length === 0 || typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.cleanAnswer(item));
    const entries = Object.entries(value).map(([key, of]) => [
      key,
      WORDS.has(key) && typeof of === 'string' ? this.clean(of) : this.cleanAnswer(of),
    ]);
    return Object.fromEntries(entries);
  }
}
